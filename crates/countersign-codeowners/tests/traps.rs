//! The traps of reading a CODEOWNERS file, one table each: what other readers of this format are
//! known to get wrong, and what GitHub's own error list says.

use countersign_codeowners::{
    CodeOwners, Diagnostic, Effect, MAX_DIAGNOSTICS, MAX_FILE_BYTES, Match, PatternProblem, Problem,
};

fn names(found: Match<'_>) -> Vec<String> {
    found.owners().iter().map(ToString::to_string).collect()
}

/// The only diagnostic of a text.
fn only(text: &str) -> Diagnostic {
    let file = CodeOwners::parse(text);
    let [one] = file.diagnostics() else {
        panic!("{text:?}: {:?}", file.diagnostics())
    };
    one.clone()
}

#[test]
fn unowned_is_not_unmatched() {
    let file = CodeOwners::parse("/apps/ @octocat\n/apps/github\n/apps/github/ci.yml @ops\n");
    assert!(file.diagnostics().is_empty());
    assert!(matches!(file.owners_of("README.md"), Match::Unmatched));
    let Match::Unowned { rule } = file.owners_of("apps/github/x.rs") else {
        panic!("unowned expected")
    };
    assert_eq!(
        (rule.line(), rule.pattern(), rule.owners().len()),
        (2, "/apps/github", 0)
    );
    assert_eq!(names(file.owners_of("apps/github/ci.yml")), ["@ops"]);
    assert_eq!(names(file.owners_of("apps/web/x.rs")), ["@octocat"]);
    // Also with a comment where the owners would be.
    let file = CodeOwners::parse("* @a\n/gen/ # nobody\n");
    assert!(matches!(file.owners_of("gen/x"), Match::Unowned { rule } if rule.line() == 2));
}

#[test]
fn the_last_match_wins_and_owners_never_accumulate() {
    let file = CodeOwners::parse("* @all\n*.rs @rust\nsrc/ @src @src2\n*.rs @last\n");
    assert_eq!(names(file.owners_of("src/a.rs")), ["@last"]);
    assert_eq!(names(file.owners_of("src/a.c")), ["@src", "@src2"]);
    assert_eq!(names(file.owners_of("a.c")), ["@all"]);
    let Match::Owned { rule, .. } = file.owners_of("x.rs") else {
        panic!("owned expected")
    };
    assert_eq!((rule.line(), rule.pattern()), (4, "*.rs"));
    // The same pattern twice: the second line alone counts.
    let file = CodeOwners::parse("apps/ @one\napps/ @two\n");
    assert_eq!(names(file.owners_of("apps/x")), ["@two"]);
}

#[test]
fn an_invalid_line_is_skipped_reported_and_nothing_else_changes() {
    // Line, column and kind are those GitHub's own error list gives for its example file.
    let file = CodeOwners::parse("* @core\n\n***/*.rb @monalisa\n\n*.md @docs\n\n*.txt docs@\n*.go @go\n");
    let found: Vec<_> = file
        .diagnostics()
        .iter()
        .map(|d| (d.line, d.column, d.text.as_str(), d.problem.clone()))
        .collect();
    assert_eq!(
        found,
        [
            (
                3,
                1,
                "***/*.rb @monalisa",
                Problem::InvalidPattern {
                    problem: PatternProblem::TripleAsterisk
                }
            ),
            (7, 7, "*.txt docs@", Problem::InvalidOwner { owner: "docs@".into() }),
        ]
    );
    assert!(file.diagnostics().iter().all(|d| d.effect == Effect::LineSkipped));
    assert_eq!(names(file.owners_of("a.rb")), ["@core"]);
    assert_eq!(names(file.owners_of("a.txt")), ["@core"]);
    assert_eq!(names(file.owners_of("a.md")), ["@docs"]);
    assert_eq!(names(file.owners_of("a.go")), ["@go"]);
    // An owner who appears on skipped lines only is not listed.
    let listed: Vec<_> = file.listed_owners().iter().map(ToString::to_string).collect();
    assert_eq!(listed, ["@core", "@docs", "@go"]);
}

#[test]
fn one_bad_owner_costs_the_line() {
    let d = only("* @good user @other");
    assert_eq!((d.line, d.column), (1, 9));
    assert_eq!(d.problem, Problem::InvalidOwner { owner: "user".into() });
    assert_eq!(
        d.remedy,
        "Write each owner as @user, @org/team or an e-mail address, separated by spaces."
    );
    assert!(CodeOwners::parse("* @good user @other").rules().is_empty());
}

#[test]
fn gitignore_syntax_that_codeowners_lacks() {
    for (line, problem, column) in [
        (
            "!docs/ @a",
            Problem::InvalidPattern {
                problem: PatternProblem::Negation,
            },
            1,
        ),
        (
            "  !docs/ @a",
            Problem::InvalidPattern {
                problem: PatternProblem::Negation,
            },
            3,
        ),
        (
            "src/[a-z].rs @a",
            Problem::InvalidPattern {
                problem: PatternProblem::CharacterRange,
            },
            1,
        ),
        (
            "app/[slug]/ @a",
            Problem::InvalidPattern {
                problem: PatternProblem::CharacterRange,
            },
            1,
        ),
        ("\\#notes @a", Problem::EscapedHash, 1),
        ("docs/c\\#/ @a", Problem::EscapedHash, 1),
        (
            "/ @a",
            Problem::InvalidPattern {
                problem: PatternProblem::NeverMatches,
            },
            1,
        ),
        (
            "docs\\",
            Problem::InvalidPattern {
                problem: PatternProblem::DanglingEscape,
            },
            1,
        ),
        (
            "*\u{a0}@a",
            Problem::InvalidPattern {
                problem: PatternProblem::InvisibleCharacter,
            },
            1,
        ),
    ] {
        let d = only(line);
        assert_eq!(
            (&d.problem, d.column, d.effect),
            (&problem, column, Effect::LineSkipped),
            "{line}"
        );
        assert!(d.remedy.ends_with('.'), "{line}: {}", d.remedy);
        assert!(CodeOwners::parse(line).rules().is_empty(), "{line}");
    }
    assert_eq!(
        only("src/[a-z].rs @a").to_string(),
        "line 1, column 1: `[` and `]` define no character range in CODEOWNERS. \
         Escape brackets that are in the path (`\\[` and `\\]`), or use `?` or `*`."
    );
    // Escaped, brackets are part of the path.
    let file = CodeOwners::parse("app/\\[slug\\]/ @a");
    assert!(file.diagnostics().is_empty());
    assert_eq!(names(file.owners_of("app/[slug]/page.tsx")), ["@a"]);
    assert!(matches!(file.owners_of("app/s/page.tsx"), Match::Unmatched));
}

#[test]
fn comments() {
    let file = CodeOwners::parse(
        "# one\n   # two\n\t# three\n*.js @js #inline\n*.rs @rs # @not an owner\n*.go @go#glued\n#*.md @md\n# *.md @md",
    );
    assert!(file.diagnostics().is_empty(), "{:?}", file.diagnostics());
    assert_eq!(file.rules().iter().map(|r| r.line()).collect::<Vec<_>>(), [4, 5, 6]);
    for (path, owner) in [("a.js", "@js"), ("a.rs", "@rs"), ("a.go", "@go")] {
        assert_eq!(names(file.owners_of(path)), [owner]);
    }
    assert!(matches!(file.owners_of("a.md"), Match::Unmatched));
    // A hash inside a pattern is a comment too; that is rarely meant.
    let d = only("docs/c#/ @a");
    assert_eq!((d.problem, d.effect), (Problem::HashEndsPattern, Effect::RuleKept));
    assert!(matches!(
        CodeOwners::parse("docs/c#/ @a").owners_of("docs/c"),
        Match::Unowned { .. }
    ));
}

#[test]
fn blanks_line_ends_and_the_byte_order_mark() {
    for text in [
        "*.a @x\n/b/ @y @z\n",
        "*.a @x\n/b/ @y @z",
        "*.a @x\r\n/b/ @y @z\r\n",
        "\u{feff}*.a @x\n/b/ @y @z\n",
        "  *.a \t @x  \n\t/b/\t@y\t\t@z\t \n",
        "*.a @x \n/b/ @y @z   ",
    ] {
        let file = CodeOwners::parse(text);
        assert!(file.diagnostics().is_empty(), "{text:?}: {:?}", file.diagnostics());
        assert_eq!(names(file.owners_of("q/f.a")), ["@x"], "{text:?}");
        assert_eq!(names(file.owners_of("b/c")), ["@y", "@z"], "{text:?}");
        assert_eq!(
            file.rules().iter().map(|r| r.line()).collect::<Vec<_>>(),
            [1, 2],
            "{text:?}"
        );
    }
    for empty in [
        "",
        "\n",
        "\r\n\r\n",
        "   \n\t\n",
        "\u{feff}",
        "# only a comment",
        "\u{feff}# comment\n",
    ] {
        let file = CodeOwners::parse(empty);
        assert!(file.rules().is_empty() && file.diagnostics().is_empty(), "{empty:?}");
    }
    // An escaped blank belongs to the pattern, also at its end.
    let file = CodeOwners::parse("my\\ docs/ @a\nend\\  @b\n");
    assert!(file.diagnostics().is_empty());
    assert_eq!(names(file.owners_of("my docs/x")), ["@a"]);
    assert_eq!(names(file.owners_of("end ")), ["@b"]);
    assert_eq!(file.rules()[0].pattern(), "my\\ docs/");
}

#[test]
fn paths_are_case_sensitive_and_owners_are_not() {
    let file = CodeOwners::parse("Docs/ @Ankur-Singh @Org/Core Docs@Example.com\n");
    assert!(matches!(file.owners_of("docs/a"), Match::Unmatched));
    let found = file.owners_of("Docs/a");
    assert!(found.owners()[0].is_user("ankur-singh"));
    assert!(found.owners()[1].is_team("ORG", "core"));
    let lower = CodeOwners::parse("* @ankur-singh @org/core docs@example.com\n");
    assert_eq!(found.owners(), lower.owners_of("x").owners());
}

#[test]
fn a_file_of_three_megabytes_has_no_effect() {
    let rules = "* @core\n";
    let fill = "# padding, padding, padding, pad\n";
    let with_len = |len: usize| {
        let mut text = rules.to_owned();
        while text.len() + fill.len() <= len {
            text.push_str(fill);
        }
        text.push_str(&"#".repeat(len - text.len()));
        text
    };
    let below = CodeOwners::parse(&with_len(MAX_FILE_BYTES - 1));
    assert!(!below.is_ignored() && below.owners_of("a").is_catch_all());
    let at = CodeOwners::parse(&with_len(MAX_FILE_BYTES));
    assert!(at.is_ignored() && at.rules().is_empty() && at.listed_owners().is_empty());
    assert!(matches!(at.owners_of("a"), Match::Unmatched));
    let [d] = at.diagnostics() else {
        panic!("{:?}", at.diagnostics())
    };
    assert_eq!(
        d.problem,
        Problem::FileTooLarge {
            bytes: 3_145_728,
            limit: 3_145_728
        }
    );
    assert_eq!((d.line, d.effect), (1, Effect::FileIgnored));
    assert_eq!(at.doubts_about("a").len(), 1);
}

#[test]
fn owners_that_cannot_exist() {
    // A long top-level domain is fine.
    assert!(
        CodeOwners::parse("* a@b.photography c@d.international\n")
            .diagnostics()
            .is_empty()
    );
    // Teams of any organisation, also of another than the repository's.
    assert!(
        CodeOwners::parse("* @Other-Org/some_team @app[bot]\n")
            .diagnostics()
            .is_empty()
    );
    for (line, owner, column) in [
        ("* @org/", "@org/", 3),
        ("* @ok @org/team/sub", "@org/team/sub", 7),
        ("* @/team", "@/team", 3),
        ("* @", "@", 3),
        ("* @ name", "@", 3),
        ("* @a, @b", "@a,", 3),
        ("* org/team", "org/team", 3),
    ] {
        let d = only(line);
        assert_eq!(
            (d.problem, d.column),
            (Problem::InvalidOwner { owner: owner.into() }, column),
            "{line}"
        );
    }
    // Two logins glued together resolve to nobody; GitHub keeps the line and its other owners.
    let file = CodeOwners::parse("* @one@two @three\n");
    assert_eq!(
        file.diagnostics()[0].problem,
        Problem::UnlikelyEmail {
            owner: "@one@two".into()
        }
    );
    assert_eq!(file.diagnostics()[0].effect, Effect::RuleKept);
    let found = file.owners_of("x");
    assert!(found.owners().iter().any(|o| o.is_user("three")));
    assert!(!found.owners().iter().any(|o| o.is_user("one") || o.is_user("two")));
    // No pattern, or no blank after it: the owner is taken for a path.
    for line in ["@org/team", "*@octocat", "src/@octocat # all"] {
        let d = only(line);
        assert!(matches!(d.problem, Problem::OwnerReadAsPattern { .. }), "{line}: {d}");
        assert_eq!(d.effect, Effect::RuleKept);
        assert!(CodeOwners::parse(line).listed_owners().is_empty());
    }
}

#[test]
fn both_paths_of_a_rename() {
    let file = CodeOwners::parse("* @core\n/old/ @old\n/new/ @new\n");
    let found = file.owners_of_change("new/a", Some("old/a"));
    assert_eq!(
        found.iter().map(|(p, m)| (*p, names(*m))).collect::<Vec<_>>(),
        [("new/a", vec!["@new".to_owned()]), ("old/a", vec!["@old".to_owned()])]
    );
    assert_eq!(file.owners_of_change("new/a", None).len(), 1);
    assert_eq!(file.owners_of_change("new/a", Some("new/a")).len(), 1);
    // Moved out of a specific line into the catch-all: the specific line still counts.
    let found = file.owners_of_change("elsewhere/a", Some("old/a"));
    assert_eq!((found[0].1.is_catch_all(), found[1].1.is_catch_all()), (true, false));
}

#[test]
fn catch_all_by_meaning() {
    for yes in ["*", "**", "/**", "**/*", "/**/*"] {
        assert!(
            CodeOwners::parse(&format!("{yes} @a")).owners_of("x/y").is_catch_all(),
            "{yes}"
        );
    }
    for no in ["/*", "*.rs", "*/", "src/", "?", "*a*"] {
        let file = CodeOwners::parse(&format!("{no} @a"));
        assert!(!file.rules()[0].is_catch_all(), "{no}");
    }
    // A catch-all later in the file takes everything back.
    assert!(CodeOwners::parse("src/ @a\n* @b\n").owners_of("src/x").is_catch_all());
}

#[test]
fn listed_owners_once_each_in_order() {
    let file = CodeOwners::parse("* @B @a\nx @A @org/T c@d.org\ny @b @ORG/t C@D.org @z\n");
    let listed: Vec<_> = file.listed_owners().iter().map(ToString::to_string).collect();
    assert_eq!(listed, ["@B", "@a", "@org/T", "c@d.org", "@z"]);
}

#[test]
fn doubts_name_the_skipped_lines_that_matter_for_a_path() {
    let file = CodeOwners::parse(
        "* @core\n\
         /a/ nobody\n\
         /b/[xy]/ @b\n\
         !/c/ @c\n\
         /a/inner @late\n\
         ***/d.rb @d\n\
         / @e\n\
         docs/c\\#/ @f\n",
    );
    let doubts = |path: &str| file.doubts_about(path).iter().map(|d| d.line).collect::<Vec<_>>();
    assert_eq!(doubts("a/x"), [2]);
    // A later valid line decides, so the skipped one would have changed nothing.
    assert_eq!(doubts("a/inner"), [0; 0]);
    assert_eq!(doubts("b/q/f"), [3]);
    assert_eq!(doubts("bb/q/f"), [0; 0]);
    assert_eq!(doubts("c/f"), [4]);
    assert_eq!(doubts("x/d.rb"), [6]);
    assert_eq!(doubts("docs/c#/f"), [8]);
    assert_eq!(doubts("zzz"), [0; 0]);
    // An unreadable pattern could have meant anything.
    let file = CodeOwners::parse("* @core\nx\\\n[ab].rs @b\n");
    assert_eq!(
        file.doubts_about("q").iter().map(|d| d.line).collect::<Vec<_>>(),
        [2, 3]
    );
}

#[test]
fn diagnostics_are_bounded() {
    let long = format!("* {}", "x".repeat(5000));
    let d = only(&long);
    assert_eq!(d.text.chars().count(), 160);
    assert!(
        matches!(d.problem, Problem::InvalidOwner { owner } if owner.chars().count() == 160 && owner.ends_with('…'))
    );
    let many = "! @a\n".repeat(MAX_DIAGNOSTICS + 250) + "* @core\n";
    let file = CodeOwners::parse(&many);
    assert_eq!(file.diagnostics().len(), MAX_DIAGNOSTICS + 1);
    let last = &file.diagnostics()[MAX_DIAGNOSTICS];
    assert_eq!(
        (&last.problem, last.line),
        (&Problem::TooManyProblems { omitted: 250 }, MAX_DIAGNOSTICS + 250)
    );
    assert!(file.owners_of("x").is_catch_all());
    // What is not listed still casts doubt.
    let file = CodeOwners::parse(&("* @core\n".to_owned() + &"/z/ @\n".repeat(MAX_DIAGNOSTICS + 1)));
    assert_eq!(file.doubts_about("x").len(), 1);
}

#[test]
fn serialised_form() {
    let file = CodeOwners::parse("* @Core/Team a@b.org\n!x @a\n");
    let json = serde_json::to_value(&file).expect("serialises");
    assert_eq!(
        json,
        serde_json::json!({
            "rules": [{"line": 1, "pattern": "*", "owners": ["@Core/Team", "a@b.org"]}],
            "diagnostics": [{
                "line": 2, "column": 1, "text": "!x @a",
                "problem": {"kind": "invalid_pattern", "problem": "negation"},
                "effect": "line_skipped",
                "remedy": "Write the exception as a later rule for the same path, with its own owners or with none."
            }]
        })
    );
}
