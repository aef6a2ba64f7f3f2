//! The changelog: base and head, separated by a line of `%%%`, judged by the gate's rules and by the merge-time rules.

use std::collections::BTreeSet;

use countersign_records::changelog::{ChangelogRules, GateModes, Kind, Links, check, gate};

/// The pull request that the head belongs to.
const PULL: u64 = 7;

pub(crate) fn run(data: &[u8]) {
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let rules = ChangelogRules {
        link_prefix: "https://code.example/made/up/pull/".to_owned(),
        placeholders: words(&["XXX"]),
        scenario_types: words(&["fixed-seq-len", "agentic-coding"]),
    };
    let separator = b"%%%\n";
    let at = data.windows(separator.len()).position(|window| window == separator);
    let (base, head) = match at {
        // The head is the base and what follows, as it is nearly always.
        Some(at) => (&data[..at], [&data[..at], &data[at + separator.len()..]].concat()),
        None => (&data[..0], data.to_vec()),
    };
    let known: BTreeSet<String> = ["a-x", "a-y", "b-x"].map(str::to_owned).into();
    for links in [Links::PullRequest(PULL), Links::DefaultBranch] {
        let checked = check(base, &head, links, &rules);
        if let Some(suggestion) = &checked.suggestion {
            assert!(!checked.passes(), "a suggestion where nothing is wrong");
            let mended = [base, suggestion.append.as_bytes()].concat();
            let again = check(base, &mended, links, &rules);
            assert!(again.passes(), "the suggestion does not hold: {:#?}", again.violations);
        }
        for violation in &checked.violations {
            assert!(!violation.fix.is_empty(), "{violation:?}");
        }
        let judged = gate(base, &head, &known, GateModes::default(), &rules);
        if checked.passes() && !checked.additions.is_empty() {
            let looser = |kind: Kind| matches!(kind, Kind::UnknownKey | Kind::AppendOnly);
            assert!(
                judged.violations.iter().all(|violation| looser(violation.kind)),
                "the strict rules are not the stricter ones: {:#?}",
                judged.violations
            );
        }
    }
}
