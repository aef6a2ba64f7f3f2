//! Configs, changelogs, recipes, policies: everything that is YAML.

use countersign_yaml::{Limits, parse, parse_all};

pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let limits = Limits::default();
    if let Ok(document) = parse(&text, &limits) {
        let again = parse(&text, &limits).map(|again| again.root.same_value(&document.root));
        assert!(matches!(again, Ok(true)), "read twice, it differs");
        let _ = serde_json::to_string(&document.root.to_json());
    }
    let _ = parse_all(&text, &limits);
}
