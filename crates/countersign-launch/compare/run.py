#!/usr/bin/env python3
"""Sets derived launches against real runs: see README.md in this folder."""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict

# Programs that only look at or shape text and files below the root folder: these are real. Everything else is a stub.
REAL = """
basename cat chmod cp cut date dirname echo env expr false find grep egrep fgrep head id ln ls mkdir mktemp mv paste
printf readlink realpath rm rmdir seq sort stat tail tee test touch tr true uname uniq wc xargs awk gawk mawk bash sh
""".split()

# Programs that scripts are known to look for; a stub of each is on the path. Others are met by the shell's own handler for
# unknown commands.
STUBS = """
sed python python3 pip pip3 uv vllm sglang trtllm-serve trtllm-llmapi-launch atom nvidia-smi rocm-smi amd-smi curl wget git hf
huggingface-cli mpirun numactl sleep kill pkill killall ps free lscpu nproc hostname docker srun sbatch scontrol squeue
scancel apt apt-get ssh scp tar unzip jq lsof ss netstat ip ibv_devinfo modprobe sysctl ulimit setsid nohup timeout stdbuf
taskset ldconfig make cmake ninja gcc g++ cargo rustc npm node aiperf genai-perf mooncake_master lmcache rsync df du mount
umount getconf sync dmesg lspci which flock patch diff cmp md5sum sha256sum base64 od hexdump
""".split()

STUB = """#!/usr/bin/python3.REAL -IS
import json, os, sys
me = os.path.basename(sys.argv[0])
argv = [me] + sys.argv[1:]
if me != "sed":
    with open(os.environ.get("RECORD_TO", "/record"), "a") as out:
        out.write(json.dumps({"argv": argv, "env": dict(os.environ), "cwd": os.getcwd()}) + "\\n")
rest = sys.argv[1:]
if me in ("env", "nohup", "setsid", "stdbuf", "numactl", "taskset", "timeout", "mpirun"):
    sys.exit(0)
if me == "sed" and not ("-i" in rest and not os.path.exists(rest[-1])):
    # Real, except on files that only the image has.
    os.execv("/usr/bin/sed", ["sed"] + rest)
for name, text in OUTPUTS.items():
    if me == name:
        print(text)
if me == "sleep":
    # Loops that wait end by the time limit; a short pause keeps them from filling the record.
    import time
    time.sleep(0.05)
joined = " ".join(rest)
if "venv" in rest:
    # A virtual environment: its programs are stubs too.
    for name in ("python", "python3", "pip", "aiperf", "hf", "vllm", "sglang"):
        path = os.path.join(rest[-1], "bin", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.lexists(path):
            os.symlink("/stubs/stub", path)
if any(w in joined for w in SERVERS) or me in ("vllm", "trtllm-serve"):
    import time
    time.sleep(1.5)
sys.exit(0)
"""

# What some programs print: an idle machine.
OUTPUTS = {"nproc": "64", "hostname": "10.0.0.1", "rocm-smi": "GPU[0] : GPU Memory Allocated (VRAM%): 0\nGPU[0] : MEC firmware version: 200"}

SERVERS = ["vllm.entrypoints", "sglang.launch_server", "trtllm-serve", "atom.entrypoints", "vllm serve", "sglang serve"]


def build_root(folder, tree, interpreter):
    """A root with the repository at /workspace, stubs, and nothing else of the machine but its libraries."""
    for name in ["usr", "dev", "proc", "tmp", "root", "etc/alternatives", "stubs", "workspace", "data", "models"]:
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    for name, target in [("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64"), ("sbin", "usr/sbin")]:
        os.symlink(target, os.path.join(folder, name))
    shutil.copytree(tree, os.path.join(folder, "workspace"), dirs_exist_ok=True, symlinks=True)
    text = STUB.replace("/usr/bin/python3.REAL", interpreter).replace("SERVERS", repr(SERVERS)).replace("OUTPUTS", repr(OUTPUTS))
    stub = os.path.join(folder, "stubs", "stub")
    with open(stub, "w") as out:
        out.write(text)
    os.chmod(stub, 0o755)
    for name in STUBS:
        path = os.path.join(folder, "stubs", name)
        if not os.path.exists(path):
            os.symlink("stub", path)
    for name in REAL:
        for place in ["/usr/bin/", "/bin/"]:
            if os.path.exists(place + name):
                os.symlink(place + name, os.path.join(folder, "stubs", name))
                break


ENTER = r"""
set -e
root="$1"; shift
mount -t tmpfs none "$root/tmp"
mount --bind /usr "$root/usr"; mount -o remount,ro,bind "$root/usr"
if [ -d /etc/alternatives ]; then mount --bind /etc/alternatives "$root/etc/alternatives"; fi
mount -t proc none "$root/proc"
: > "$root/dev/null"; mount --bind /dev/null "$root/dev/null"
: > "$root/dev/urandom"; mount --bind /dev/urandom "$root/dev/urandom"
exec chroot "$root" /usr/bin/env -i "$@"
"""


def run(root, point, seconds):
    """Runs the point's script in namespaces of its own, without network; gives what was started."""
    record = os.path.join(root, "record")
    open(record, "w").close()
    os.chmod(record, 0o666)
    env = dict(point["environment"])
    env.setdefault("HOME", "/root")
    env["PATH"] = "/stubs"
    env["RECORD_TO"] = "/record"
    env["BASH_FUNC_command_not_found_handle%%"] = '() { /stubs/stub "$@"; }'
    words = [f"{k}={v}" for k, v in env.items()]
    script = "/workspace/" + point["script"]
    command = ["unshare", "-m", "-n", "-p", "--fork", "--kill-child", "bash", "-c", ENTER, "enter", root, *words]
    command += ["/usr/bin/bash", "-c", 'cd /workspace && exec /usr/bin/bash "$0"', script]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
        errors="replace",
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    with open(record) as lines:
        started = [json.loads(line) for line in lines if line.strip()]
    return started, output


def unwrapped(argv):
    """The command behind wrappers such as `env A=b`, `numactl …`, `mpirun -n 1`."""
    argv = list(argv)
    while argv:
        name = os.path.basename(argv[0])
        if re.fullmatch(r"[A-Za-z_]\w*=.*", argv[0], re.S) or name in ("env", "nohup", "setsid", "exec"):
            argv = argv[1:]
        elif name in ("numactl", "mpirun", "taskset", "stdbuf", "timeout", "trtllm-llmapi-launch"):
            argv = argv[1:]
            while argv and (argv[0].startswith("-") or re.fullmatch(r"[\d.,smh-]+|all", argv[0])):
                argv = argv[1:]
        else:
            break
    return argv


def is_server(argv):
    argv = unwrapped(argv)
    if not argv:
        return False
    name = os.path.basename(argv[0])
    if name in ("vllm", "sglang", "trtllm-serve") and "bench" not in argv[1:2]:
        return name == "trtllm-serve" or argv[1:2] == ["serve"]
    if name.startswith("python"):
        return "-m" in argv and argv[argv.index("-m") + 1] in (
            "sglang.launch_server",
            "vllm.entrypoints.openai.api_server",
            "atom.entrypoints.openai_server",
        )
    return False


def flags_of(argv):
    """Flags of a real command: name without dashes → list of values; words before the first flag are positional."""
    argv = unwrapped(argv)
    if os.path.basename(argv[0]).startswith("python"):
        argv = argv[argv.index("-m") + 2:]
    elif argv[1:2] == ["serve"]:
        argv = argv[2:]
    else:
        argv = argv[1:]
    flags, positional, index = [], [], 0
    while index < len(argv):
        word = argv[index]
        index += 1
        if re.match(r"-{1,2}[A-Za-z]", word):
            name, sign, value = word.partition("=")
            values = [value] if sign else []
            while index < len(argv) and not re.match(r"-{1,2}[A-Za-z]", argv[index]):
                values.append(argv[index])
                index += 1
            flags.append((name.lstrip("-").replace("_", "-"), values))
        else:
            positional.append(word)
    return flags, positional


def pattern(text):
    """A derived text as a pattern: unknown pieces match anything."""
    out = ""
    for piece in text["pieces"]:
        out += re.escape(piece["known"]) if "known" in piece else ".*"
    return out


def leaves(prefix, value):
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(f"{prefix}.{key}", item)
    elif isinstance(value, list) and any(isinstance(i, (dict, list)) for i in value):
        for index, item in enumerate(value):
            yield from leaves(f"{prefix}.{index}", item)
    elif isinstance(value, list):
        yield prefix, "[" + ",".join(scalar(i) for i in value) + "]"
    else:
        yield prefix, scalar(value)


def scalar(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def same(pat, text):
    if re.fullmatch(pat, text, re.S):
        return True
    plain = re.sub(r"\\(.)", r"\1", pat)
    a, b = number(plain), number(text)
    return (a is not None and a == b) or plain.lower() == text.lower()


def differences(real, launch):
    """What differs between a real command and a derived launch, in words."""
    out = []
    ours = defaultdict(list)
    for values in launch["flags"].values():
        for value in values:
            if value["via"] not in ("command_line", "command-line"):
                continue
            name = value["spelled"].lstrip("-").replace("_", "-")
            ours[name].append(pattern(value["value"]))
    by_name = {n: [pattern(v["value"]) for v in vs] for n, vs in launch["flags"].items()}
    flags, positional = flags_of(real["argv"])
    used = set()
    opaque = bool(launch["opaque"])
    for name, values in flags:
        # A switch is true; `--no-x` is derived as x being false.
        text = " ".join(values) if values else "false" if name.startswith("no-") else "true"
        # A JSON value is kept by its leaves.
        if values and values[0][:1] in "{[":
            try:
                tree = json.loads(" ".join(values))
            except ValueError:
                tree = None
            if isinstance(tree, dict):
                missing = []
                for leaf, leaf_text in leaves("", tree):
                    found = [n for n in by_name if n.endswith(leaf) and any(same(p, leaf_text) for p in by_name[n])]
                    if not found:
                        missing.append(f"{name}{leaf}={leaf_text}")
                    used.update(found)
                if missing and not opaque:
                    out.append("not derived: " + ", ".join(missing))
                used.update(n for n in ours if n.split(".")[0] == name)
                used.add(name)
                continue
        candidates = ours.get(name)
        if candidates is None:
            dotted = [n for n in by_name if n.endswith("." + name.split(".")[-1]) or n == name]
            candidates = [p for n in dotted for p in by_name[n]]
            used.update(dotted)
        used.add(name)
        if not candidates:
            if not opaque:
                out.append(f"not derived: --{name} {text}")
        elif not any(same(p, text) for p in candidates):
            if not any(same(p, v) for p in candidates for v in values):
                out.append(f"--{name}: real `{text}`, derived `{'` or `'.join(candidates)}`")
    for name, patterns in ours.items():
        if name not in used and name.split(".")[0] not in used and name not in ("model",):
            out.append(f"derived only: --{name} {patterns}")
    models = [p for n in ("model", "model-path") for p in by_name.get(n, [])]
    for word in positional[:1]:
        if not any(same(p, word) for p in models):
            out.append(f"model: real `{word}`, derived {models}")
    for name, value in launch["environment"].items():
        if value["via"] != "environment" or name not in real["env"]:
            if name not in real["env"]:
                out.append(f"derived only: ${name}")
            continue
        if not same(pattern(value["value"]), real["env"][name]):
            out.append(f"${name}: real `{real['env'][name]}`, derived `{pattern(value['value'])}`")
    return out


def missing_environment(real, launch, point):
    """Variables that the script set for the server and that were not derived."""
    ignored = {"PATH", "HOME", "RECORD_TO", "PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE", "BASH_FUNC_command_not_found_handle%%"}
    out = []
    for name, value in real["env"].items():
        if name in ignored or name in launch["environment"] or point["environment"].get(name) == value:
            continue
        out.append(f"not derived: ${name}={value}")
    return out


def altered(argv):
    """The command with one change each, to see that a difference would be told."""
    yield argv + ["--not-a-flag"]
    flags = [i for i, word in enumerate(argv) if word.startswith("--")]
    values = [i + 1 for i in flags if i + 1 < len(argv) and argv[i + 1].isdigit()]
    if values:
        yield argv[: values[-1]] + [argv[values[-1]] + "7"] + argv[values[-1] + 1 :]
    if flags:
        last = flags[-1]
        end = last + 1
        while end < len(argv) and not re.match(r"-{1,2}[A-Za-z]", argv[end]):
            end += 1
        yield argv[:last] + argv[end:]
    trees = [i for i, word in enumerate(argv) if word.startswith("{")]
    if trees:
        yield argv[: trees[-1]] + [json.dumps({**json.loads(argv[trees[-1]]), "zz": 1})] + argv[trees[-1] + 1 :]


def chosen(points, entries, each):
    """Points spread over engines and hardware: entries in turn over the kinds, of each the first and the middle points."""
    by_entry = defaultdict(list)
    for point in points:
        by_entry[point["entry"]].append(point)
    kinds = defaultdict(list)
    for entry, list_ in by_entry.items():
        first = list_[0]
        kinds[(first["framework"], first["hardware"], first["scenario"])].append(entry)
    order = []
    while any(kinds.values()) and len(order) < entries:
        for kind in sorted(kinds):
            if kinds[kind] and len(order) < entries:
                order.append(kinds[kind].pop(0))
    picked = []
    for entry in order:
        list_ = by_entry[entry]
        step = max(1, len(list_) // each)
        picked.extend(list_[::step][:each])
    return picked, len(order)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("repository", help="git directory")
    options.add_argument("rev")
    options.add_argument("derived", help="output of `launches json`")
    options.add_argument("--entries", type=int, default=40)
    options.add_argument("--each", type=int, default=3, help="points of each entry")
    options.add_argument("--seconds", type=float, default=20.0)
    options.add_argument("--scratch", default=None)
    options.add_argument("--report", default=None, help="write every comparison as a line of JSON")
    options.add_argument("--keep", action="store_true", help="print the script's output where no server was started")
    args = options.parse_args()
    if os.geteuid() != 0:
        sys.exit("namespaces and chroot need root")
    with open(args.derived) as lines:
        points = [json.loads(line) for line in lines if line.startswith("{")]
    picked, entries = chosen(points, args.entries, args.each)
    interpreter = os.path.realpath("/usr/bin/python3")
    counts, report, points_compared = Counter(), [], set()
    with tempfile.TemporaryDirectory(dir=args.scratch) as scratch:
        tree = os.path.join(scratch, "tree")
        os.makedirs(tree)
        archive = subprocess.run(["git", "--git-dir", args.repository, "archive", args.rev], check=True, capture_output=True)
        subprocess.run(["tar", "x", "-C", tree], input=archive.stdout, check=True)
        for index, point in enumerate(picked):
            root = os.path.join(scratch, f"root{index}")
            os.makedirs(root)
            build_root(root, tree, interpreter)
            started, output = run(root, point, args.seconds)
            shutil.rmtree(root, ignore_errors=True)
            servers = [s for s in started if is_server(s["argv"])]
            name = f"{point['entry']} conc {point['conc']}"
            derived = [l for l in point["starts"]["launches"] if l["engine"] != "router"]
            if not servers:
                counts["no server was started"] += 1
                print(f"NONE {name}: {point['script']}; started {[s['argv'][:3] for s in started][-6:]}")
                if args.keep:
                    print(output[-600:])
                continue
            seen = []
            for server in servers:
                if server["argv"] in seen:
                    continue
                seen.append(server["argv"])
                points_compared.add(name)
                best = min(
                    (differences(server, l) + missing_environment(server, l, point) for l in derived),
                    key=len,
                    default=["no launch was derived"],
                )
                counts["same" if not best else "different"] += 1
                report.append({"point": name, "argv": server["argv"], "env": server["env"], "differences": best})
                for wrong in altered(server["argv"]):
                    told = all(differences({**server, "argv": wrong}, l) for l in derived)
                    counts["alterations told" if told else "alterations missed"] += 1
                    if not told:
                        print(f"MISSED {name}: {' '.join(wrong)[-160:]}")
                for line in best:
                    print(f"DIFF {name}: {line}")
    print(f"{entries} entries, {len(picked)} points, {len(points_compared)} of them compared: {dict(counts)}")
    if args.report:
        with open(args.report, "w") as out:
            out.writelines(json.dumps(line) + "\n" for line in report)


if __name__ == "__main__":
    main()
