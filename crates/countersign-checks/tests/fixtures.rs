//! Every fixture is judged and compared with what it says; every check has its file, its registry line, its folder, and a
//! fixture for every outcome it can have (issue: adding a check is one file, one line, one folder).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use countersign_checks::sketch::Sketch;
use countersign_checks::{Context, checks, policy_then};
use countersign_core::OutcomeKind;
use countersign_policy::LoadedPolicy;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    about: String,
    expect: OutcomeKind,
    /// Codes of all findings, in order.
    #[serde(default)]
    codes: Vec<String>,
    /// Texts that the row must show.
    #[serde(default)]
    says: Vec<String>,
    /// Overrides of the sample policy, as a policy file that extends it.
    #[serde(default)]
    policy: Option<String>,
    #[serde(default)]
    evidence: Sketch,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

fn policy(over: Option<&str>) -> LoadedPolicy {
    let source = |name: &str| match (name, over) {
        ("over", Some(text)) => Ok(format!("extends: policy\n{text}")),
        _ => std::fs::read_to_string(folder().join(format!("{name}.yaml"))).map_err(|error| error.to_string()),
    };
    let name = if over.is_some() { "over" } else { "policy" };
    countersign_policy::load(name, &source).unwrap_or_else(|error| panic!("{error}"))
}

fn fixtures(slug: &str) -> Vec<(String, Fixture)> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder().join(slug)) else {
        return found;
    };
    for entry in entries {
        let path = entry.expect("readable folder").path();
        let name = format!("{slug}/{}", path.file_stem().unwrap_or_default().to_string_lossy());
        let text = std::fs::read_to_string(&path).expect("readable fixture");
        let fixture = countersign_yaml::from_str(&text, &countersign_yaml::Limits::default())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        found.push((name, fixture));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

#[test]
fn every_fixture_is_judged_as_it_says() {
    let mut wrong = Vec::new();
    for check in checks::all() {
        for (name, fixture) in fixtures(check.slug()) {
            let policy = policy(fixture.policy.as_deref());
            let evidence = fixture.evidence.evidence().expect("valid logins");
            let then = policy_then(&evidence, &policy);
            let report = check.run(&Context::new(&evidence, &then));
            let codes: Vec<&str> = report
                .outcome
                .findings()
                .iter()
                .map(|finding| finding.code.as_str())
                .collect();
            let mut shown = report.reason.markdown();
            for finding in report.outcome.findings() {
                shown.push_str(&format!(
                    "\n{}\n→ {}\n{}",
                    finding.message.markdown(),
                    finding.remedy.markdown(),
                    finding.paste.clone().unwrap_or_default()
                ));
            }
            for note in &report.notes {
                shown.push_str(&format!("\nnote: {}", note.markdown()));
            }
            let missing: Vec<&String> = fixture
                .says
                .iter()
                .filter(|text| !shown.contains(text.as_str()))
                .collect();
            if report.outcome.kind() != fixture.expect || codes != fixture.codes || !missing.is_empty() {
                wrong.push(format!(
                    "{name} ({})\n  wanted {:?} {:?} saying {missing:?}\n  got    {:?} {codes:?}\n  {shown}",
                    fixture.about,
                    fixture.expect,
                    fixture.codes,
                    report.outcome.kind()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_outcome_and_every_finding_code_has_a_fixture() {
    let mut gaps = Vec::new();
    for check in checks::all() {
        let fixtures = fixtures(check.slug());
        let outcomes: BTreeSet<OutcomeKind> = fixtures.iter().map(|(_, fixture)| fixture.expect).collect();
        for outcome in check.outcomes() {
            if !outcomes.contains(outcome) {
                gaps.push(format!("{}: no fixture expects {outcome:?}", check.slug()));
            }
        }
        for outcome in outcomes.iter().filter(|outcome| !check.outcomes().contains(outcome)) {
            gaps.push(format!("{}: OUTCOMES lacks {outcome:?}", check.slug()));
        }
        let seen: BTreeSet<&str> = fixtures
            .iter()
            .flat_map(|(_, fixture)| fixture.codes.iter().map(String::as_str))
            .collect();
        for piece in check.source().split("Finding::new(").skip(1) {
            let code = piece
                .trim_start()
                .trim_start_matches('"')
                .split('"')
                .next()
                .unwrap_or_default();
            if !seen.contains(code) {
                gaps.push(format!("{}: no fixture has the finding `{code}`", check.slug()));
            }
        }
    }
    assert!(gaps.is_empty(), "{}", gaps.join("\n"));
}

#[test]
fn files_registry_folders_and_pages_are_the_same_set() {
    let names = |path: &Path, ending: &str| -> BTreeSet<String> {
        std::fs::read_dir(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let name = path.file_name()?.to_string_lossy().into_owned();
                if ending.is_empty() {
                    path.is_dir().then_some(name)
                } else {
                    Some(name.strip_suffix(ending)?.to_owned())
                }
            })
            .collect()
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = names(&root.join("src/checks"), ".rs");
    files.remove("mod");
    let modules: BTreeSet<String> = checks::modules().iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(files, modules, "files under src/checks and lines of the registry");
    let slugs: BTreeSet<String> = checks::all().iter().map(|check| check.slug().to_owned()).collect();
    assert_eq!(
        slugs,
        modules.iter().map(|name| name.replace('_', "-")).collect(),
        "slugs follow module names"
    );
    assert_eq!(names(&folder(), ""), slugs, "folders under fixtures and checks");
    let pages = root.join("../../docs/checks");
    assert_eq!(
        names(&pages, ".md"),
        slugs,
        "pages under docs/checks; run `countersign policy docs docs/checks`"
    );
    for check in checks::all() {
        let page = std::fs::read_to_string(pages.join(format!("{}.md", check.slug()))).expect("readable page");
        assert_eq!(
            page,
            countersign_checks::docs::page(*check),
            "docs/checks/{}.md is stale; run `countersign policy docs docs/checks`",
            check.slug()
        );
        let doc = check.doc();
        for heading in ["## What it checks", "## Passes when", "## Fails when", "## How to fix"] {
            assert!(
                doc.contains(heading),
                "{}: the head comment lacks `{heading}`",
                check.slug()
            );
        }
    }
}
