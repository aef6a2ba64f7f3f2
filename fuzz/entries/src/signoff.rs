//! A comment, as sign-off, as template and as commands, under the rules of the demo's policy.

use std::sync::OnceLock;

use countersign_policy::LoadedPolicy;

fn policy() -> Option<&'static LoadedPolicy> {
    static POLICY: OnceLock<Option<LoadedPolicy>> = OnceLock::new();
    POLICY
        .get_or_init(|| {
            let text = include_str!("../../../crates/countersign-cli/demo/policy.yaml");
            countersign_policy::load("demo", &|_: &str| Ok::<_, String>(text.to_owned())).ok()
        })
        .as_ref()
}

pub(crate) fn run(data: &[u8]) {
    let Some(loaded) = policy() else {
        unreachable!("the demo's policy is right")
    };
    countersign_signoff::exercise(data, &loaded.policy.signoff, &loaded.policy.commands.words);
}
