//! The historical CODEOWNERS files of a real repository, where the shared data is present.

use std::path::PathBuf;

use countersign_codeowners::{CodeOwners, Match};

fn shared() -> PathBuf {
    std::env::var_os("COUNTERSIGN_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    )
}

fn owners(file: &CodeOwners, path: &str) -> String {
    let names: Vec<_> = file.owners_of(path).owners().iter().map(ToString::to_string).collect();
    names.join(" ")
}

/// Reads the fields of a line in the most naive way: good enough for files without comments on
/// rule lines, escapes or invalid lines, and independent of the parser.
fn naive(text: &str) -> Vec<(String, String)> {
    text.lines()
        .filter(|l| !l.trim().is_empty() && !l.starts_with('#'))
        .map(|l| {
            let mut words = l.split_whitespace();
            (
                words.next().unwrap_or_default().to_owned(),
                words.collect::<Vec<_>>().join(" "),
            )
        })
        .collect()
}

#[test]
#[allow(clippy::print_stderr)]
fn all_versions_parse_without_a_diagnostic() {
    let folder = shared().join("inferencex/history/CODEOWNERS");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: {} is absent", folder.display());
        return;
    };
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("readable").path()).collect();
    files.sort();
    assert_eq!(files.len(), 14);
    for name in &files {
        let text = std::fs::read_to_string(name).expect("UTF-8");
        let file = CodeOwners::parse(&text);
        assert!(
            file.diagnostics().is_empty(),
            "{}: {:?}",
            name.display(),
            file.diagnostics()
        );
        let read: Vec<(String, String)> = file
            .rules()
            .iter()
            .map(|r| {
                (
                    r.pattern().to_owned(),
                    r.owners().iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
                )
            })
            .collect();
        assert_eq!(read, naive(&text), "{}", name.display());

        // In every version the masters have their own lines and everything else the first one,
        // wherever the masters were at that time.
        let (_, core) = &read[0];
        for (pattern, listed) in &read[1..] {
            let path = if pattern.ends_with('/') {
                format!("{pattern}x")
            } else {
                pattern.clone()
            };
            assert_eq!(owners(&file, &path), *listed, "{}: {path}", name.display());
            assert!(!file.owners_of(&path).is_catch_all());
        }
        for path in [
            "perf-changelog.yaml",
            "configs/runners.yaml",
            "benchmarks/single_node/x.sh",
            ".github/CODEOWNERS",
        ] {
            assert_eq!(owners(&file, path), *core, "{}: {path}", name.display());
            assert!(file.owners_of(path).is_catch_all());
        }
    }

    // Facts of single versions, from the history itself.
    let read = |name: &str| CodeOwners::parse(&std::fs::read_to_string(folder.join(name)).expect("present"));
    let first = read("2025-10-06-5de26a26.md"); // no final newline
    assert_eq!(owners(&first, "configs/nvidia-master.yaml"), "@InferenceMAX/core");
    let spaces = read("2026-04-26-9275a664.md"); // trailing spaces
    assert_eq!(
        owners(&spaces, ".github/configs/nvidia-master.yaml"),
        "@ankursingh-nv @kedarpotdar-nv @jgangani @Qiaolin-Yu"
    );
    assert!(spaces.owners_of("configs/nvidia-master.yaml").is_catch_all());
}

#[test]
#[allow(clippy::print_stderr)]
fn the_newest_version_answers_as_the_domain_guide_says() {
    let name = shared().join("inferencex/.github/CODEOWNERS");
    let Ok(text) = std::fs::read_to_string(&name) else {
        eprintln!("skipped: {} is absent", name.display());
        return;
    };
    let file = CodeOwners::parse(&text);
    let amd = "@billishyahao @chunfangamd @seungrokj @yctseng0211 @1am9trash";
    let nvidia = "@ankur-singh @kedarpotdar-nv @InferenceX/core";
    let models = "@ankur-singh @chunfangamd @InferenceX/core";
    for (path, expected) in [
        ("configs/amd-master.yaml", amd),
        ("configs/nvidia-master.yaml", nvidia),
        ("MODELS.md", models),
        ("docs/MODELS.md", models),
        ("MODELS_zh.md", models),
        ("experimental/operatorx/README.md", "@hbarclay"),
        ("experimental/other/README.md", "@InferenceX/core"),
        ("configs/deprecated/amd-1k1k-master.yaml", "@InferenceX/core"),
        ("configs/runners.yaml", "@InferenceX/core"),
        ("configs/AMD-master.yaml", "@InferenceX/core"),
    ] {
        assert_eq!(owners(&file, path), expected, "{path}");
    }
    // The file spells the login in lower case, the person signs with a capital.
    assert!(file.owners_of("configs/nvidia-master.yaml").owners()[0].is_user("Ankur-singh"));
    assert_eq!(file.listed_owners().len(), 9);
    assert!(matches!(file.owners_of("configs/nvidia-master.yaml"), Match::Owned { rule, .. } if rule.line() == 7));
    // A rename out of the AMD master still asks the AMD owners.
    let both = file.owners_of_change("configs/new.yaml", Some("configs/amd-master.yaml"));
    assert!(both[0].1.is_catch_all() && both[1].1.owners().iter().any(|o| o.is_user("CHUNFANGAMD")));
}
