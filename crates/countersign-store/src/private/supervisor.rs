//! Runs the server under a small shell script that outlives us just long enough to stop it.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::binaries::Binaries;
use super::folder::{MARKER, Marked, tail};
use super::{PrivateError, PrivateOptions, settings};

/// The server's standard input is a pipe of which we hold the other end. When that closes, because we stop or because we are gone, the server
/// is shut down, and its data go if the folder is a temporary and a marked one. The small rest, with the marker, is removed by us, or where we
/// are gone by the next start. A server that ends by itself ends the script, and leaves its data.
const SCRIPT: &str = r#"
leave=
trap 'leave=1' USR1
exec 3<&0 </dev/null
"$@" 3<&- &
server=$!
( while read -r _ <&3; do :; done; kill -USR1 $$; kill -INT $server ) 2>/dev/null &
watch=$!
exec 3<&-
wait $server
code=$?
if [ -n "$leave" ]; then
    kill -INT $server 2>/dev/null
    wait $server 2>/dev/null
    if [ -n "$COUNTERSIGN_CLEAN" ] && [ -f "$COUNTERSIGN_CLEAN/$COUNTERSIGN_MARKER" ]; then
        rm -rf -- "$COUNTERSIGN_CLEAN/data"
    fi
    exit 0
fi
kill $watch 2>/dev/null
exit $code
"#;

#[derive(Debug)]
pub(super) struct Supervisor {
    child: Child,
}

impl Supervisor {
    pub(super) fn start(binaries: &Binaries, folder: &Marked, options: &PrivateOptions) -> Result<Self, PrivateError> {
        let mut command = script(SCRIPT, binaries, folder, options)?;
        command.stdin(Stdio::piped());
        if folder.is_temporary() {
            command.env("COUNTERSIGN_CLEAN", folder.path());
        }
        let child = command
            .spawn()
            .map_err(|error| PrivateError::io("cannot run", Path::new("/bin/sh"), error))?;
        let mut supervisor = Self { child };
        wait_until_ready(&mut supervisor.child, folder, options.start_timeout)?;
        Ok(supervisor)
    }

    /// A fast shutdown: sessions are ended, data is written.
    pub(super) fn stop(mut self, binaries: &Binaries, folder: &Marked) -> Result<(), PrivateError> {
        drop(self.child.stdin.take());
        if wait(&mut self.child, Duration::from_secs(20)) {
            return Ok(());
        }
        self.crash(binaries, folder)
    }

    /// An immediate one: as if the machine had lost its power, but for what the operating system still holds.
    pub(super) fn crash(mut self, binaries: &Binaries, folder: &Marked) -> Result<(), PrivateError> {
        let program = binaries.program("pg_ctl");
        let output = folder
            .command(&program)
            .args(["stop", "--mode", "immediate", "--wait", "--pgdata"])
            .arg(folder.data())
            .output()
            .map_err(|error| PrivateError::io("cannot run", &program, error))?;
        if wait(&mut self.child, Duration::from_secs(20)) {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(PrivateError::Failed {
            program: "pg_ctl stop",
            status: output.status.to_string(),
            output: tail(&said),
        })
    }
}

/// The script, its arguments and its log, as the server's user, in a process group of its own: Ctrl-C on the terminal is for us, not for
/// the database, which we still need while we shut down.
pub(super) fn script(
    script: &str,
    binaries: &Binaries,
    folder: &Marked,
    options: &PrivateOptions,
) -> Result<Command, PrivateError> {
    let log_path = folder.log();
    // The server only inherits it open, so it may stay ours.
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&log_path)
        .map_err(|error| PrivateError::io("cannot write", &log_path, error))?;
    let twin = log
        .try_clone()
        .map_err(|error| PrivateError::io("cannot write", &log_path, error))?;
    let mut command = folder.command(Path::new("/bin/sh"));
    command
        .arg("-c")
        .arg(script)
        .arg("countersign-postgres")
        .arg(binaries.program("postgres"));
    command.arg("-D").arg(folder.data());
    for setting in settings(options, &folder.sockets()) {
        command.arg("-c").arg(setting);
    }
    command.env("COUNTERSIGN_MARKER", MARKER).env("COUNTERSIGN_CLEAN", "");
    command.stdout(log).stderr(twin).process_group(0);
    Ok(command)
}

pub(super) fn wait_until_ready(child: &mut Child, folder: &Marked, timeout: Duration) -> Result<(), PrivateError> {
    let deadline = Instant::now() + timeout;
    let log = || tail(&std::fs::read_to_string(folder.log()).unwrap_or_default());
    loop {
        let ended = child
            .try_wait()
            .map_err(|error| PrivateError::io("cannot watch", folder.path(), error))?;
        if let Some(status) = ended {
            return Err(PrivateError::Failed {
                program: "postgres",
                status: status.to_string(),
                output: log(),
            });
        }
        if is_ready(folder, child.id()) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            drop(child.stdin.take());
            let status = format!("not ready after {} s", timeout.as_secs());
            return Err(PrivateError::Failed {
                program: "postgres",
                status,
                output: log(),
            });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The eighth line of `postmaster.pid` tells how far the server is. A file that an earlier server left behind does not count.
fn is_ready(folder: &Marked, supervisor: u32) -> bool {
    let text = std::fs::read_to_string(folder.data().join("postmaster.pid")).unwrap_or_default();
    let ours = text
        .lines()
        .next()
        .and_then(|pid| parent_of(pid.trim()))
        .is_none_or(|parent| parent == supervisor);
    ours && text.lines().nth(7).is_some_and(|line| line.trim() == "ready")
}

/// None: cannot be told here.
fn parent_of(pid: &str) -> Option<u32> {
    if !Path::new("/proc/self/stat").exists() {
        return None;
    }
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    // `pid (name) state parent …`; the name may hold anything.
    Some(
        stat.rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok())
            .unwrap_or(0),
    )
}

fn wait(child: &mut Child, most: Duration) -> bool {
    let deadline = Instant::now() + most;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return true,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
            _ => return false,
        }
    }
}
