//! Handlers for the end of a script that start nothing that anybody looks at: they stop processes, copy logs and tidy up.

use std::sync::Arc;

use super::Evaluator;
use super::builtins::BUILTINS;
use super::setup::Answers;
use crate::syntax::Script;
use crate::uses::Uses;
use crate::value::Value;
use crate::world::World;

/// Commands of the shell itself besides [`BUILTINS`].
const OWN: [&str; 6] = ["disown", "jobs", "kill", "let", "typeset", "umask"];

/// What runs others, a text or a file, or changes what a name means, but for wrappers.
const FOLLOWED: [&str; 9] = [".", "alias", "bash", "builtin", "eval", "sh", "source", "trap", "xargs"];

impl Evaluator<'_> {
    /// Whether a text can be left out where a script ends, since nothing follows: all that it may call in any of these
    /// worlds, directly or through functions, is named where it is called, and the reader looks at none of it.
    pub(super) fn is_idle(&self, text: &Value, worlds: &[World]) -> bool {
        let (Some(answers), Some(text)) = (self.answers, text.known()) else {
            return false;
        };
        let script = Script::parse("", &text, &self.limits);
        if !script.issues().is_empty() {
            return false;
        }
        let of_text = Uses::of(&script);
        let Some(called) = of_text.called("") else { return false };
        let called: Vec<Arc<str>> = called.cloned().collect();
        let mut looked: Option<&World> = None;
        for world in worlds {
            let alike = |looked: &World| looked.functions.same_by(&world.functions, Arc::ptr_eq);
            if !looked.is_some_and(alike) && !are_idle(answers, called.clone(), world) {
                return false;
            }
            looked = Some(world);
        }
        true
    }
}

/// Whether the reader looks at nothing of what these names call.
fn are_idle(answers: &dyn Answers, mut open: Vec<Arc<str>>, world: &World) -> bool {
    let mut seen: Vec<Arc<str>> = Vec::new();
    while let Some(name) = open.pop() {
        if seen.contains(&name) {
            continue;
        }
        if let Some(function) = world.functions.get(&name) {
            if answers.knows(&name) || answers.may_read(&name, true) {
                return false;
            }
            let uses = function.script.uses.get_or_init(|| Uses::of(&function.script));
            let Some(called) = uses.called(&function.name) else {
                return false;
            };
            open.extend(called.cloned());
        } else if FOLLOWED.contains(&&*name) || crate::wrappers::is_wrapper(&name) {
            return false;
        } else if !BUILTINS.contains(&&*name) && !OWN.contains(&&*name) {
            let plain = name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
            if !plain || answers.knows(&name) || answers.may_read(&name, false) {
                return false;
            }
        }
        seen.push(name);
    }
    true
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::*;
    use crate::{Answer, Command, ScriptCache, Setup, Word, evaluate_with};

    /// Looks at `run`, and writes down what it was asked of.
    #[derive(Default)]
    struct Reader {
        asked: RefCell<Vec<String>>,
    }

    impl Answers for Reader {
        fn answer(&self, _: &Command) -> Option<Answer> {
            None
        }

        fn knows(&self, _: &str) -> bool {
            false
        }

        fn reads(&self, argv: &[Word], _: &[(Arc<str>, Word)]) -> bool {
            let name = argv.first().map(|word| word.value.display()).unwrap_or_default();
            let runs = argv.iter().any(|word| word.value.display() == "run");
            self.asked.borrow_mut().push(name);
            runs
        }

        fn may_read(&self, name: &str, is_function: bool) -> bool {
            name == "run" || !(is_function || name == "tidy")
        }
    }

    /// The commands that a script with this handler starts, and whether the handler was gone through.
    fn ends_with(functions: &str, handler: &str) -> (Vec<String>, bool) {
        let script = format!("{functions}\ng() {{ ls; f; }}\ntrap '{handler}' EXIT\nrun first\n");
        let files: BTreeMap<String, Arc<str>> = [
            ("a.sh".to_owned(), Arc::from(script)),
            ("lib.sh".to_owned(), Arc::from("run last\n")),
        ]
        .into();
        let setup = Setup {
            script: "a.sh".into(),
            ..Setup::default()
        };
        let reader = Reader::default();
        let evaluation = evaluate_with(&files, &ScriptCache::new(setup.limits), &setup, Some(&reader));
        let commands = evaluation.commands.iter().map(Command::display).collect();
        let asked = reader.asked.into_inner();
        (commands, asked.iter().any(|name| name != "run"))
    }

    #[test]
    fn a_handler_that_only_tidies_up_is_left_out() {
        for (functions, handler) in [
            ("f() { kill \"$P\"; tidy \"$(tidy now)\"; f; }", "f; exit 1"),
            (
                "f() { tidy <<X\n$(tidy more)\nX\n}",
                "if [ -n \"$P\" ]; then f || true; fi",
            ),
            ("f() { trap - EXIT; x=(a [$(tidy)]=b); }", "f"),
        ] {
            let (commands, gone_through) = ends_with(functions, handler);
            assert_eq!(commands, ["run first"], "{functions} {handler}");
            assert!(!gone_through, "{functions} {handler}");
        }
    }

    #[test]
    fn a_handler_that_may_start_something_is_gone_through() {
        for (functions, handler) in [
            ("f() { run last; }", "f"),
            ("f() { run last; }", "g"),
            ("f() { run; }; run() { echo last; }", "f"),
            ("f() { tidy <<X\n$(run last)\nX\n}", "f"),
            ("f() { local -a x=([$(run last)]=b); }", "f"),
            ("f() { timeout 5 run last; }", "f"),
            ("f() { r=run; $r last; }", "f"),
            ("f() { tidy() { run last; }; tidy; }", "f"),
            ("tidy() { run last; }; f() { tidy; }", "f"),
            ("f() { source lib.sh; }", "f"),
            ("f() { eval \"run last\"; }", "f"),
            ("f() { bash lib.sh; }", "f"),
            ("f() { (trap \"run last\" EXIT; exit); }", "f"),
        ] {
            let (commands, gone_through) = ends_with(functions, handler);
            assert!(gone_through, "{functions} {handler}: {commands:?}");
        }
        let (commands, _) = ends_with("f() { tidy <<X\n$(run last)\nX\n}", "g");
        assert_eq!(commands, ["run first", "run last"]);
    }
}
