//! Reads the migrations and refuses what would break the program that is still running (migrations/README.md).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use regex::Regex;

/// The statements of a file, in upper case, with one blank between words, without comments, string contents and dollar-quoted bodies.
fn statements(sql: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut rest = sql;
    while let Some(c) = rest.chars().next() {
        let skip = if rest.starts_with("--") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if c == '\'' {
            plain.push_str("''");
            rest[1..].find('\'').map_or(rest.len(), |at| at + 2)
        } else if let Some(body) = rest.strip_prefix("$$") {
            plain.push_str("''");
            body.find("$$").map_or(rest.len(), |at| at + 4)
        } else {
            plain.extend(c.to_uppercase());
            c.len_utf8()
        };
        rest = &rest[skip..];
    }
    plain
        .split(';')
        .map(|s| s.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|s| !s.is_empty())
        .collect()
}

/// Splits at commas outside of parentheses.
fn parts(statement: &str) -> Vec<String> {
    let (mut depth, mut parts) = (0_i32, vec![String::new()]);
    for c in statement.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

/// What is wrong with an up file.
fn complaints(sql: &str) -> Vec<String> {
    let contract = sql.starts_with("-- contract: ");
    let mut complaints = Vec::new();
    let add = Regex::new(r"\bADD (COLUMN )?(IF NOT EXISTS )?").unwrap();
    let not_a_column =
        Regex::new(r"^(CONSTRAINT|CHECK|UNIQUE|PRIMARY KEY|FOREIGN KEY|EXCLUDE|VALUE|GENERATED)\b").unwrap();
    let breaking =
        Regex::new(r"^DROP TABLE|^TRUNCATE|\bDROP (COLUMN )|\bRENAME\b|\bALTER (COLUMN )?\S+ (SET DATA )?TYPE\b")
            .unwrap();
    for statement in statements(sql) {
        if !contract && breaking.is_match(&statement) {
            complaints.push(format!("outside a contract step: {statement}"));
        }
        if !statement.starts_with("ALTER TABLE") {
            continue;
        }
        for part in parts(&statement) {
            if !contract && part.contains("SET NOT NULL") {
                complaints.push(format!("outside a contract step: {part}"));
            }
            let Some(found) = add.find(&part) else { continue };
            let definition = &part[found.end()..];
            let has_value = definition.contains(" DEFAULT ") || definition.contains(" GENERATED ");
            let required = definition.contains(" NOT NULL") || definition.contains(" PRIMARY KEY");
            if !not_a_column.is_match(definition) && required && !has_value {
                complaints.push(format!("NOT NULL without DEFAULT: {part}"));
            }
        }
    }
    complaints
}

#[test]
fn the_migrations_keep_the_rules() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
    let mut pairs: BTreeMap<u32, BTreeMap<String, String>> = BTreeMap::new();
    let shape = Regex::new(r"^([0-9]{4})_([a-z0-9_]+)\.(up|down)\.sql$").unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "sql") {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let found = shape
            .captures(&name)
            .unwrap_or_else(|| panic!("{name} is not called NNNN_name.(up|down).sql"));
        let sql = fs::read_to_string(&path).unwrap();
        if &found[3] == "up" {
            assert_eq!(complaints(&sql), Vec::<String>::new(), "{name}");
        }
        assert!(!statements(&sql).is_empty(), "{name} does nothing");
        pairs
            .entry(found[1].parse().unwrap())
            .or_default()
            .insert(found[3].to_owned(), found[2].to_owned());
    }
    assert!(pairs.len() >= 6);
    for ((number, pair), expected) in pairs.iter().zip(1..) {
        assert_eq!(*number, expected, "the numbers have a gap");
        assert!(
            pair.contains_key("up") && pair.get("up") == pair.get("down"),
            "{number}: {pair:?}"
        );
    }
}

#[test]
fn the_rules_bite() {
    for bad in [
        "ALTER TABLE work ADD COLUMN a text NOT NULL;",
        "alter table work\n  add a text not null",
        "ALTER TABLE work ADD COLUMN ok int, ADD COLUMN IF NOT EXISTS b numeric(3, 2) NOT NULL CHECK (b > 0);",
        "ALTER TABLE work ADD COLUMN a text /* DEFAULT 'x' */ NOT NULL -- DEFAULT 'x'\n;",
        "ALTER TABLE work ADD COLUMN a text NOT NULL CHECK (a <> ' DEFAULT ')",
        "ALTER TABLE work ADD COLUMN id bigint PRIMARY KEY",
        "ALTER TABLE work ALTER COLUMN a SET NOT NULL",
        "ALTER TABLE work ALTER a TYPE bigint",
        "ALTER TABLE work ALTER COLUMN a SET DATA TYPE bigint",
        "ALTER TABLE work DROP COLUMN a",
        "ALTER TABLE work RENAME TO jobs",
        "ALTER TABLE work RENAME COLUMN a TO b",
        "DROP TABLE work",
        "SELECT 1; TRUNCATE work",
    ] {
        assert_ne!(complaints(bad), Vec::<String>::new(), "{bad}");
    }
    for good in [
        "CREATE TABLE a (b text NOT NULL)",
        "ALTER TABLE work ADD COLUMN a text",
        "ALTER TABLE work ADD COLUMN a text NOT NULL DEFAULT ''",
        "ALTER TABLE work ADD COLUMN a bigint NOT NULL GENERATED ALWAYS AS IDENTITY",
        "ALTER TABLE work ADD CONSTRAINT c CHECK (a IS NOT NULL) NOT VALID",
        "ALTER TABLE work ADD CHECK (a IS NOT NULL)",
        "ALTER TABLE work ALTER COLUMN payload SET STORAGE EXTERNAL",
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DROP TABLE x; END $$",
        "-- contract: nothing has used it since 0.3\nALTER TABLE work DROP COLUMN a; ALTER TABLE work ALTER b SET NOT NULL",
    ] {
        assert_eq!(complaints(good), Vec::<String>::new(), "{good}");
    }
    // Not even a contract step may add what no row can have.
    assert_ne!(
        complaints("-- contract: x\nALTER TABLE work ADD a text NOT NULL"),
        Vec::<String>::new()
    );
}
