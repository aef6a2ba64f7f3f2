//! The benchmark client: how it drives the server, and whether requests pass a chat template (domain guide 9.2, 9.3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{self, Engine, Parsed};
use crate::flags::Flags;
use crate::value::{Arg, Source, Text};

/// Which commands are benchmark clients, and what makes each use a chat template. A parameter: the names belong to the
/// benchmark repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientRules {
    /// Known clients.
    pub tools: Vec<ClientTool>,
}

/// One benchmark client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientTool {
    /// Words that start it, as in `python3 -m tool` or a function name.
    pub command: Vec<String>,
    /// Flags that turn the chat template on.
    #[serde(default)]
    pub chat_flags: Vec<String>,
    /// Flag and value pairs that mean a chat endpoint: the value must contain the text.
    #[serde(default)]
    pub chat_values: Vec<(String, String)>,
    /// The client always uses a chat endpoint.
    #[serde(default)]
    pub always_chat: bool,
}

/// A call of a benchmark client.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientCall {
    /// The client, as its rule spells it.
    pub tool: String,
    /// Its flags.
    pub flags: Flags,
    /// Whether requests pass a chat template.
    pub chat_template: ChatTemplate,
    /// Where it is called.
    pub source: Source,
}

/// Whether a chat template is applied to the prompts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatTemplate {
    /// Yes, and by what.
    Used(String),
    /// No.
    Unused,
    /// It depends on these unknowns.
    Symbolic(Vec<String>),
}

impl ClientRules {
    /// Reads a command as a client call, if it is one.
    pub fn read(&self, argv: &[Arg]) -> Option<ClientCall> {
        let words: Vec<&str> = argv.iter().map(|a| a.text.as_known().unwrap_or("")).collect();
        let (tool, at) = self.tools.iter().find_map(|tool| {
            let n = tool.command.len();
            (n > 0)
                .then(|| {
                    (0..words.len().saturating_sub(n - 1))
                        .find(|&i| words[i..i + n].iter().zip(&tool.command).all(|(a, b)| a == b))
                })
                .flatten()
                .map(|i| (tool, i))
        })?;
        let Parsed { flags, opaque, .. } = engine::parse_flags(Engine::Router, &argv[at + tool.command.len()..]);
        let mut unknowns: Vec<String> = opaque.iter().flat_map(|a| a.text.unknowns()).collect();
        let mut chat = tool.always_chat.then(|| ChatTemplate::Used("always".into()));
        for flag in &tool.chat_flags {
            let name = engine::normalise(Engine::Router, flag);
            if let Some(value) = flags.get(&name) {
                match value.value.as_known() {
                    Some("false" | "0") => {}
                    Some(_) => chat = chat.or(Some(ChatTemplate::Used(flag.clone()))),
                    None => unknowns.extend(value.value.unknowns()),
                }
            }
        }
        for (flag, wanted) in &tool.chat_values {
            let name = engine::normalise(Engine::Router, flag);
            if let Some(value) = flags.get(&name) {
                match value.value.as_known() {
                    Some(text) if text.contains(wanted.as_str()) => {
                        chat = chat.or(Some(ChatTemplate::Used(format!("{flag} {text}"))));
                    }
                    Some(_) => {}
                    None => unknowns.extend(value.value.unknowns()),
                }
            }
        }
        unknowns.sort();
        unknowns.dedup();
        let chat_template = chat.unwrap_or(if unknowns.is_empty() {
            ChatTemplate::Unused
        } else {
            ChatTemplate::Symbolic(unknowns)
        });
        let source = argv.get(at).map_or_else(|| Source::new("", 0), |a| a.source.clone());
        Some(ClientCall {
            tool: tool.command.join(" "),
            flags,
            chat_template,
            source,
        })
    }
}

/// What a recipe's benchmark section says of the chat template; unsaid is on (domain guide 9.4).
pub(crate) fn from_recipe(kind: &str, said: Option<&Text>, source: Source) -> ClientCall {
    let chat_template = match said.map(|t| (t.as_known(), t)) {
        None => ChatTemplate::Used("default of the recipe runner".into()),
        Some((Some("true"), _)) => ChatTemplate::Used("use_chat_template".into()),
        Some((Some(_), _)) => ChatTemplate::Unused,
        Some((None, text)) => ChatTemplate::Symbolic(text.unknowns()),
    };
    ClientCall {
        tool: kind.to_owned(),
        flags: Flags::default(),
        chat_template,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> ClientRules {
        ClientRules {
            tools: vec![
                ClientTool {
                    command: vec!["drive".into()],
                    chat_flags: vec!["--use-template".into(), "--fancy".into()],
                    chat_values: vec![("--endpoint".into(), "/chat/".into())],
                    always_chat: false,
                },
                ClientTool {
                    command: vec!["-m".into(), "replay".into()],
                    always_chat: true,
                    ..ClientTool::default()
                },
            ],
        }
    }

    fn chat(line: &str) -> Option<ChatTemplate> {
        let argv: Vec<Arg> = line
            .split_whitespace()
            .map(|w| {
                let text = w.strip_prefix('$').map_or_else(|| Text::known(w), Text::unknown);
                Arg::new(text, Source::new("f", 1))
            })
            .collect();
        rules().read(&argv).map(|c| c.chat_template)
    }

    #[test]
    fn templates() {
        assert_eq!(
            chat("drive --port 1 --fancy"),
            Some(ChatTemplate::Used("--fancy".into()))
        );
        assert_eq!(
            chat("drive --endpoint /v1/chat/completions"),
            Some(ChatTemplate::Used("--endpoint /v1/chat/completions".into()))
        );
        assert_eq!(chat("drive --endpoint /v1/completions"), Some(ChatTemplate::Unused));
        assert_eq!(
            chat("drive --port 1 $MORE"),
            Some(ChatTemplate::Symbolic(vec!["MORE".into()]))
        );
        assert_eq!(chat("python3 -m replay"), Some(ChatTemplate::Used("always".into())));
        assert_eq!(chat("python3 -m other"), None);
    }
}
