//! Derives launches from a git repository and prints how much of each is known.
//!
//! `cargo run --example launches -- recipes GIT_DIR [REV] [FOLDER]`
//! `cargo run --example launches -- points GIT_DIR [REV] [ENTRY]`
//! `cargo run --example launches -- compare GIT_DIR REV ENTRY PAGE`
//! `cargo run --example launches -- json GIT_DIR REV [ENTRY…]`
//! `cargo run --example launches -- pages GIT_DIR [REV] [FOLDER] [show]`
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use countersign_launch::compare::{Class, MajorRules, Subject};
use countersign_launch::point::{self, DeriveRules};
use countersign_launch::recipe::{self, RecipeOptions};
use countersign_launch::render;
use countersign_launch::summary::Summary;
use countersign_launch::upstream::{self, Catalog, PageRules};
use countersign_launch::{Acceptance, Fact, Launch, Role, compare};
use countersign_matrix as matrix;

/// Files of one revision, read through the `git` program.
pub struct Repository {
    dir: String,
    rev: String,
}

impl Repository {
    /// A repository at a revision.
    pub fn new(dir: &str, rev: &str) -> Self {
        Repository {
            dir: dir.into(),
            rev: rev.into(),
        }
    }

    fn git(&self, args: &[&str]) -> Vec<u8> {
        Command::new("git")
            .arg("--git-dir")
            .arg(&self.dir)
            .args(args)
            .output()
            .map(|o| o.stdout)
            .unwrap_or_default()
    }

    /// Paths under a folder.
    pub fn list(&self, under: &str) -> Vec<String> {
        let out = self.git(&["ls-tree", "-r", "--name-only", &self.rev, "--", under]);
        String::from_utf8_lossy(&out).lines().map(str::to_owned).collect()
    }

    /// Contents of many files, in one `git` process.
    pub fn read_all(&self, paths: &[String]) -> BTreeMap<String, String> {
        let mut child = Command::new("git")
            .args(["--git-dir", &self.dir, "cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let asked: String = paths.iter().map(|p| format!("{}:{p}\n", self.rev)).collect();
        let writer = std::thread::spawn(move || stdin.write_all(asked.as_bytes()));
        let mut bytes = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
        let _ = writer.join();
        child.wait().unwrap();
        let mut out = BTreeMap::new();
        let mut rest = &bytes[..];
        for path in paths {
            let Some(end) = rest.iter().position(|b| *b == b'\n') else {
                break;
            };
            let header = String::from_utf8_lossy(&rest[..end]).into_owned();
            rest = &rest[end + 1..];
            let Some(size) = header.rsplit(' ').next().and_then(|n| n.parse::<usize>().ok()) else {
                continue;
            };
            out.insert(path.clone(), String::from_utf8_lossy(&rest[..size]).into_owned());
            rest = &rest[size + 1..];
        }
        out
    }
}

/// Counts of what is known.
#[derive(Default)]
pub struct Tally {
    launches: usize,
    known: BTreeMap<&'static str, usize>,
    all: usize,
    because: BTreeMap<String, usize>,
}

impl Tally {
    /// Adds a launch; whether all of it is known.
    pub fn add(&mut self, l: &Launch) -> bool {
        self.launches += 1;
        let mut all = true;
        let mut one = |name: &'static str, known: bool, because: Vec<String>| {
            if known {
                *self.known.entry(name).or_default() += 1;
            } else {
                all = false;
                for b in because {
                    *self.because.entry(format!("{name}: {b}")).or_default() += 1;
                }
            }
        };
        fn why<T>(f: &Fact<T>) -> Vec<String> {
            match f {
                Fact::Symbolic(n) => n.clone(),
                _ => vec!["absent".into()],
            }
        }
        one("model", l.model.is_known(), why(&l.model));
        one("tp", l.parallel.tp.is_known(), why(&l.parallel.tp));
        one("dp", l.parallel.dp.is_known(), why(&l.parallel.dp));
        one("ep", l.parallel.ep.is_known(), why(&l.parallel.ep));
        one(
            "dp-attention",
            l.parallel.dp_attention.is_known(),
            why(&l.parallel.dp_attention),
        );
        one("quantisation", l.quantisation.is_known(), why(&l.quantisation));
        one("kv-dtype", l.kv_cache_dtype.is_known(), why(&l.kv_cache_dtype));
        match &l.spec {
            None => one("spec", l.opaque.is_empty(), vec!["opaque words".into()]),
            Some(s) => {
                one(
                    "spec",
                    s.method.is_known() && s.draft_tokens.is_known(),
                    [why(&s.method), why(&s.draft_tokens)].concat(),
                );
            }
        }
        if all {
            self.all += 1;
        }
        all
    }

    /// Prints the table.
    pub fn print(&self, title: &str) {
        println!("\n{title}: {} launches", self.launches);
        let pct = |n: usize| 100.0 * n as f64 / self.launches.max(1) as f64;
        for (name, n) in &self.known {
            println!("  {name:14} {n:6}  {:6.2} %", pct(*n));
        }
        println!("  {:14} {:6}  {:6.2} %", "all of these", self.all, pct(self.all));
        for (because, n) in &self.because {
            println!("    symbolic: {because} ({n})");
        }
    }
}

fn recipes(dir: &str, rev: &str, folder: &str, show: bool) {
    let repo = Repository::new(dir, rev);
    let paths: Vec<String> = repo.list(folder).into_iter().filter(|p| p.ends_with(".yaml")).collect();
    let files = repo.read_all(&paths);
    let mut tally = Tally::default();
    let (mut ok, mut bad, mut variants) = (0, 0, 0);
    for (path, text) in &files {
        let mut selectors: Vec<Option<String>> = recipe::variants(text).into_iter().map(Some).collect();
        if selectors.is_empty() {
            selectors.push(None);
        }
        let mut failed = false;
        for selector in &selectors {
            variants += 1;
            let options = RecipeOptions {
                selector: selector.as_deref(),
                ..RecipeOptions::default()
            };
            match recipe::read(path, text, &options) {
                Ok(recipe) => {
                    for launch in recipe.launches.iter().filter(|l| l.role != Role::Frontend) {
                        if show && selector.is_none() {
                            let p = &launch.parallel;
                            let k = launch.spec.as_ref().and_then(|s| s.draft_tokens.value().copied());
                            let n = |f: &Fact<u32>| f.value().copied().unwrap_or(0);
                            println!(
                                "{path} {} tp={} pp={} dp={} ep={} dpa={} k={} kv={}",
                                launch.role,
                                n(&p.tp),
                                n(&p.pp),
                                n(&p.dp),
                                n(&p.ep),
                                p.dp_attention.value().copied().unwrap_or(false),
                                k.map_or("None".to_owned(), |k| k.to_string()),
                                launch.kv_cache_dtype.value().cloned().unwrap_or_default()
                            );
                        }
                        if !tally.add(launch) {
                            println!("{path} {selector:?} {}: {:?}", launch.role, launch.unknowns());
                        }
                    }
                }
                Err(e) => {
                    failed = true;
                    println!("{e}");
                }
            }
        }
        if failed { bad += 1 } else { ok += 1 }
    }
    println!("recipes: {ok} read, {bad} not; {variants} variants");
    tally.print("recipes");
}

fn rules(repo: &Repository) -> PageRules {
    let hardware = [
        "h100", "h200", "b200", "b300", "gb200", "gb300", "mi300x", "mi325x", "mi355x", "a100",
    ];
    let strategies: Vec<String> = repo
        .list("strategies")
        .into_iter()
        .filter(|p| p.ends_with(".yaml"))
        .collect();
    let files = repo.read_all(&strategies);
    let taxonomy = repo.read_all(&["taxonomy.yaml".to_owned()]);
    let named: Vec<(String, String)> = files.into_iter().collect();
    let (catalog, notes) = Catalog::parse(taxonomy.get("taxonomy.yaml").map(String::as_str), &named);
    for note in notes {
        println!("{note}");
    }
    PageRules {
        hardware: hardware.iter().map(|h| ((*h).to_owned(), vec![])).collect(),
        catalog,
    }
}

fn pages(dir: &str, rev: &str, folder: &str, show: bool) {
    let repo = Repository::new(dir, rev);
    let rules = rules(&repo);
    let wanted = ["md", "mdx", "js", "jsx", "yaml", "sh"];
    let paths: Vec<String> = repo
        .list(folder)
        .into_iter()
        .filter(|p| wanted.contains(&p.rsplit('.').next().unwrap_or("")))
        .collect();
    let files = repo.read_all(&paths);
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let (mut documented, mut silent, mut notes, mut worst) = (0, 0, 0, (0, String::new()));
    for (path, text) in &files {
        let at = std::time::Instant::now();
        let page = upstream::read(path, text, &rules);
        let took = at.elapsed().as_micros();
        if took > worst.0 {
            worst = (took, path.clone());
        }
        documented += page.documented.len();
        silent += usize::from(page.documented.is_empty());
        for note in &page.notes {
            notes += 1;
            println!("note: {note}");
        }
        for d in &page.documented {
            *kinds
                .entry(format!(
                    "{:?} {} {}",
                    d.kind,
                    d.launch.engine,
                    if d.hardware.is_empty() {
                        "no hardware"
                    } else {
                        "hardware"
                    }
                ))
                .or_default() += 1;
        }
        if show {
            for d in &page.documented {
                let l = &d.launch;
                println!(
                    "{path}:{} {} {} tp={} ep={} dp={} hw={:?} {:?}",
                    l.source.line, l.engine, l.model, l.parallel.tp, l.parallel.ep, l.parallel.dp, d.hardware, d.labels
                );
            }
        }
    }
    println!(
        "files {}, launches {documented}, files without {silent}, notes {notes}, slowest {} us {}",
        files.len(),
        worst.0,
        worst.1
    );
    for (kind, n) in kinds {
        println!("  {kind}: {n}");
    }
}

#[derive(serde::Deserialize)]
struct Policy {
    matrix: matrix::MatrixRules,
    layout: matrix::Layout,
    derive: DeriveRules,
}

struct Memory {
    files: matrix::MapFiles,
}

impl Memory {
    fn load(repo: &Repository) -> Self {
        let paths: Vec<String> = repo
            .list(".")
            .into_iter()
            .filter(|p| ["benchmarks/", "runners/", "configs/"].iter().any(|d| p.starts_with(d)))
            .collect();
        let mut files = matrix::MapFiles::new();
        for (path, text) in repo.read_all(&paths) {
            files = files.with(&path, text);
        }
        Memory { files }
    }
}

fn policy() -> Policy {
    let path = format!(
        "{}/../../config/policies/inferencex-common.yaml",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).unwrap();
    countersign_yaml::from_str(&text, &countersign_yaml::Limits::default()).unwrap()
}

/// All points, or those of one entry (shown in full).
fn points(dir: &str, rev: &str, only: &str) {
    let repo = Repository::new(dir, rev);
    let memory = Memory::load(&repo);
    let policy = policy();
    let configs = matrix::Configs::read(&memory.files, &policy.layout, &policy.matrix);
    let evals = if std::env::args().any(|a| a == "evals") {
        matrix::EvalMode::EvalsOnly
    } else {
        matrix::EvalMode::Unmarked
    };
    let rows = matrix::full_sweep(&configs, &policy.matrix, evals).unwrap();
    let cache = countersign_shell::ScriptCache::default();
    let tree = point::Tree {
        files: &memory.files,
        runners: &configs.runners,
        layout: &policy.layout,
        matrix: &policy.matrix,
        rules: &policy.derive,
        scripts: &cache,
    };
    let mut summary = Summary::default();
    let mut golden: BTreeMap<String, usize> = BTreeMap::new();
    let mut times: Vec<u128> = Vec::new();
    for row in &rows {
        let key = row.head.key.to_string();
        if !only.is_empty() && key != only {
            continue;
        }
        let entry = configs.masters.get(&key).unwrap();
        let at = std::time::Instant::now();
        let derived = point::derive(&tree, entry, row);
        times.push(at.elapsed().as_micros());
        let kind = format!("{:?} {}", row.nodes(), row.scenario().name());
        summary.add(&kind, &key, &derived);
        let servers: Vec<&Launch> = derived.servers().collect();
        if row.scenario() == matrix::ScenarioType::Agentic {
            for launch in servers.iter().filter(|l| l.role != Role::Prefill) {
                if let Some(spec) = &launch.spec {
                    let length = match &spec.acceptance {
                        Acceptance::Synthetic { length, .. } => format!("{length}"),
                        other => format!("{other:?}"),
                    };
                    *golden
                        .entry(format!("{key} {} K={} AL={length}", spec.method, spec.draft_tokens))
                        .or_default() += 1;
                }
            }
        }
        if !only.is_empty() {
            println!("=== {} conc {:?}", row.exp_name, row.conc);
            for launch in &derived.launches {
                println!("{}", render::text(launch));
            }
            println!(
                "missing {:?}\nnotes {:#?}\nclient {:?}",
                derived.missing,
                derived.notes,
                derived.client.as_ref().map(|c| (&c.tool, &c.chat_template, &c.source))
            );
        }
    }
    print!("{summary}");
    for (line, n) in golden {
        println!("acceptance {line} ({n})");
    }
    times.sort_unstable();
    let pick = |q: f64| {
        times
            .get(((times.len() as f64 - 1.0) * q) as usize)
            .copied()
            .unwrap_or(0)
    };
    println!(
        "time a point: median {} us, p99 {} us, max {} us",
        pick(0.5),
        pick(0.99),
        pick(1.0)
    );
}

/// One line of JSON for each point that a script starts: the script, its environment and what was derived; for `compare/`.
fn json_points(dir: &str, rev: &str, keys: &[String]) {
    let repo = Repository::new(dir, rev);
    let memory = Memory::load(&repo);
    let policy = policy();
    let configs = matrix::Configs::read(&memory.files, &policy.layout, &policy.matrix);
    let rows = matrix::full_sweep(&configs, &policy.matrix, matrix::EvalMode::Unmarked).unwrap();
    let cache = countersign_shell::ScriptCache::default();
    let tree = point::Tree {
        files: &memory.files,
        runners: &configs.runners,
        layout: &policy.layout,
        matrix: &policy.matrix,
        rules: &policy.derive,
        scripts: &cache,
    };
    for row in rows.iter().filter(|r| !r.head.multi_node) {
        let key = row.head.key.to_string();
        if !keys.is_empty() && !keys.contains(&key) {
            continue;
        }
        let entry = configs.masters.get(&key).unwrap();
        for setup in point::scripts(&tree, entry, row) {
            let derived = point::derive(&tree, entry, row);
            let line = serde_json::json!({
                "entry": key,
                "framework": &*row.head.framework,
                "hardware": matrix::sku(&row.head.runner, &policy.layout, &policy.matrix),
                "scenario": row.scenario().name(),
                "conc": row.conc.values(),
                "script": setup.script,
                "environment": setup.environment.variables,
                "starts": derived,
            });
            println!("{line}");
        }
    }
}

#[derive(serde::Deserialize)]
struct MajorPolicy {
    major: MajorRules,
}

/// Every point of an entry against a page in a file.
fn compare_points(dir: &str, rev: &str, key: &str, page: &str) {
    let repo = Repository::new(dir, rev);
    let memory = Memory::load(&repo);
    let policy = policy();
    let major = std::fs::read_to_string(format!("{}/testdata/major.yaml", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let major: MajorPolicy = countersign_yaml::from_str(&major, &countersign_yaml::Limits::default()).unwrap();
    let text = std::fs::read_to_string(page).unwrap();
    let page = upstream::read(page, &text, &rules(&repo));
    let configs = matrix::Configs::read(&memory.files, &policy.layout, &policy.matrix);
    let cache = countersign_shell::ScriptCache::default();
    let tree = point::Tree {
        files: &memory.files,
        runners: &configs.runners,
        layout: &policy.layout,
        matrix: &policy.matrix,
        rules: &policy.derive,
        scripts: &cache,
    };
    let entry = configs.masters.get(key).unwrap();
    let hardware = matrix::sku(&entry.head.runner, &policy.layout, &policy.matrix);
    let mut seen = std::collections::BTreeSet::new();
    for row in matrix::entry_rows(&configs, &policy.matrix, entry).unwrap() {
        for launch in point::derive(&tree, entry, &row).servers() {
            let models = [row.head.model.to_string()];
            let result = compare(
                &Subject {
                    launch,
                    models: &models,
                    hardware,
                },
                &page.documented,
                &major.major,
            );
            let p = &launch.parallel;
            let bad: Vec<String> = result
                .differences
                .iter()
                .filter(|d| !matches!(d.class, Class::Matching))
                .map(|d| {
                    format!(
                        "{} {:?}: ours {} documented {:?}",
                        d.argument, d.class, d.ours, d.documented
                    )
                })
                .collect();
            let line = format!(
                "TP{} EP{} documented={} {}",
                p.tp,
                p.ep,
                result.is_documented(),
                bad.join("; ")
            );
            if seen.insert(line.clone()) {
                println!("{key} {line}");
            }
        }
    }
}

fn page(path: &str) {
    let repo = Repository::new(".", "HEAD");
    let text = std::fs::read_to_string(path).unwrap();
    let page = upstream::read(path, &text, &rules(&repo));
    println!("models named: {:?}", page.models.keys().collect::<Vec<_>>());
    for d in &page.documented {
        let l = &d.launch;
        println!(
            "{:?} {} {} tp={} ep={} dp={} quant={} kv={} attn={} moe={} spec={:?}",
            d.hardware,
            l.engine,
            l.model,
            l.parallel.tp,
            l.parallel.ep,
            l.parallel.dp,
            l.quantisation,
            l.kv_cache_dtype,
            l.attention_backend,
            l.moe_backend,
            l.spec.as_ref().map(|s| format!(
                "{} {} topk {} verify {}",
                s.method, s.draft_tokens, s.eagle_topk, s.verify_tokens
            ))
        );
    }
    for note in &page.notes {
        println!("note: {note}");
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |i: usize, default: &str| args.get(i).cloned().unwrap_or_else(|| default.to_owned());
    match arg(0, "").as_str() {
        "recipes" => recipes(
            &arg(1, "."),
            &arg(2, "HEAD"),
            &arg(3, "benchmarks/multi_node/srt-slurm-recipes"),
            args.len() > 4,
        ),
        "pages" => pages(&arg(1, "."), &arg(2, "HEAD"), &arg(3, "."), args.len() > 4),
        "points" => points(&arg(1, "."), &arg(2, "HEAD"), &arg(3, "")),
        "compare" => compare_points(&arg(1, "."), &arg(2, "HEAD"), &arg(3, ""), &arg(4, "")),
        "json" => json_points(&arg(1, "."), &arg(2, "HEAD"), args.get(3..).unwrap_or_default()),
        "page" => page(&arg(1, "")),
        _ => eprintln!("usage: launches recipes GIT_DIR [REV] [FOLDER]"),
    }
}
