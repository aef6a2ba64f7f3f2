//! What the rules about scripts look for in texts (domain guide, section 12.3), compiled once for a policy.

use countersign_policy::ScriptRules;
use countersign_shell::{RawCommand, RawWord};
use regex::Regex;

use super::acts::joined;
use super::seen::Seen;

/// What is in every option that mounts something.
const MOUNTS: &[&str] = &["-v", "--mount", "--container-mounts"];

/// What the rules of a policy look for in texts, and what they found in the scripts that were read last.
#[derive(Debug)]
pub struct Patterns {
    /// An engine's file or folder in a text of the shell.
    pub(super) target: Option<Regex>,
    /// The same in Python, where a module can be looked up or imported.
    pub(super) module: Option<Regex>,
    pub(super) writes: Option<Regex>,
    mount: Option<Regex>,
    pub(super) seen: Seen,
}

impl Patterns {
    /// Of a policy.
    #[must_use]
    pub fn new(rules: &ScriptRules) -> Self {
        let any = |words: &[String]| {
            words
                .iter()
                .map(|word| regex::escape(word))
                .collect::<Vec<_>>()
                .join("|")
        };
        let modules = any(&rules.modules);
        let folders = any(&rules.folders);
        let files = format!(r"(?:{folders})(?:/|\b)|(?:site|dist)-packages/(?:{modules})\b");
        let look_up = format!(r#"(?:find_spec|import_module|files|distribution)\(\s*["'](?:{modules})\b"#);
        let import = format!(r"(?:import|from)\s+(?:{modules})\b");
        let build = |pattern: &str| Regex::new(pattern).ok();
        Self {
            seen: Seen::default(),
            target: build(&format!(
                "{files}|{look_up}|{import}[^\\n]*__file__|__file__[^\\n]*{import}"
            )),
            module: build(&format!("{files}|{look_up}|{import}")),
            writes: build(
                r#"write_text\(|write_bytes\(|writelines\(|\bopen\([^)\n]*,\s*["'](?:w|a|x|r\+)|shutil\.(?:copy|move)|os\.(?:rename|replace|remove|symlink)\(|fileinput\.|setattr\(|sed\s+-i"#,
            ),
            mount: build(&format!(
                r"(?:^|[\s(])(?:-v|--volume|--mount|--container-mounts)(?:=|\s+)\S*[^\s:,]+:(?:(?:{folders})/|\S*(?:site|dist)-packages/(?:{modules})\b)"
            )),
        }
    }

    /// Whether it mounts something over a file or folder of the serving stack.
    pub(super) fn mounts(&self, command: &RawCommand) -> bool {
        // Nearly no command names such an option, and an option stands within one word.
        let words = command
            .argv
            .iter()
            .chain(command.assignments.iter().map(|(_, word)| word));
        let words = words.chain(command.redirects.iter().map(|redirect| &redirect.target));
        let names = |word: &RawWord| MOUNTS.iter().any(|option| word.texts[0].contains(option));
        let mount = self.mount.as_ref();
        words.into_iter().any(names) && mount.is_some_and(|mount| mount.is_match(&joined(command)))
    }
}
