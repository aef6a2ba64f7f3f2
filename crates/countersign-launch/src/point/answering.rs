//! Which commands of a script the reader of launches looks at, and what is known of programs that a script asks.

use std::sync::Arc;

use countersign_shell as shell;
use shell::Value;

use super::Tree;
use super::rules::AnswerRule;
use crate::engine::SHELL_OPAQUE;

/// What a shell is given in front of a text that it runs.
pub(super) const SHELL_TEXT: [&str; 3] = ["-c", "-lc", "-ec"];

/// What is known of programs, and which commands are looked at.
pub(super) struct Answering<'a> {
    pub(super) rules: &'a [AnswerRule],
    /// All of them without.
    pub(super) telling: Option<Telling<'a>>,
}

/// Words of which a command must have one to start a server or a client.
pub(super) struct Telling<'a> {
    own: Vec<&'a str>,
    /// Whether a program is among them to which the script hands over.
    with_program: bool,
}

impl<'a> Telling<'a> {
    /// `program` is told of besides, where a script hands over to it.
    pub(super) fn new(tree: &Tree<'a>, program: Option<&'a str>) -> Self {
        let tools = tree.rules.clients.tools.iter();
        let own = tools.filter_map(|tool| tool.command.first()).map(String::as_str);
        Telling {
            own: own.chain(program).collect(),
            with_program: program.is_some(),
        }
    }

    fn tells(&self, value: &Value) -> bool {
        if value.varies() {
            return true;
        }
        value.known().is_some_and(|text| {
            let base = text.rsplit('/').next().unwrap_or_default();
            crate::engine::is_telling(base)
                || SHELL_TEXT.contains(&base)
                || self.own.iter().any(|own| *own == text || *own == base)
        })
    }
}

impl shell::Answers for Answering<'_> {
    fn answer(&self, command: &shell::Command) -> Option<shell::Answer> {
        let name = command.name()?;
        let rule = self.rules.iter().find(|rule| {
            rule.program == name
                && command
                    .argv
                    .iter()
                    .any(|w| w.value.known().is_some_and(|t| t.contains(&rule.contains)))
        })?;
        Some(shell::Answer {
            output: Some(rule.output.clone()),
            status: Some(0),
        })
    }

    fn knows(&self, program: &str) -> bool {
        self.rules.iter().any(|rule| rule.program == program)
    }

    fn reads(&self, argv: &[shell::Word], assignments: &[(Arc<str>, shell::Word)]) -> bool {
        let mut words = argv.iter().chain(assignments.iter().map(|(_, word)| word));
        let Some(telling) = &self.telling else { return true };
        words.any(|word| telling.tells(&word.value))
    }

    fn may_read(&self, name: &str, is_function: bool) -> bool {
        // A client may be a function of the script's; a server is not.
        self.telling.as_ref().is_none_or(|telling| {
            telling.with_program || telling.own.contains(&name) || (!is_function && !SHELL_OPAQUE.contains(&name))
        })
    }
}
