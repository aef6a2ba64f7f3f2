//! Text with its trust kept: what came from a pull request can be shown in our comment but can never act there.
//!
//! A [`Text`] is a list of parts. Rendering escapes every part, so no mention, link, HTML, heading or list of a
//! pull request's author can take effect (product page, section 7); only a [`Part::Link`] made by our own code links.

use serde::{Deserialize, Serialize};

/// One part of a [`Text`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Running text. Shown literally.
    Plain(String),
    /// A name, path, value or command. Shown as code.
    Code(String),
    /// A link made by us: shown text and address. The address must be `https://` or it is shown as plain text.
    Link {
        /// What is shown.
        text: String,
        /// Where it leads.
        url: String,
    },
    /// A person who is to be notified. Only the verdict's second line uses it.
    Mention(String),
}

/// Text made of parts; see the module.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Text(pub Vec<Part>);

/// A code part.
pub fn code(text: impl std::fmt::Display) -> Part {
    Part::Code(text.to_string())
}

/// A link part.
pub fn link(text: impl std::fmt::Display, url: impl std::fmt::Display) -> Part {
    Part::Link {
        text: text.to_string(),
        url: url.to_string(),
    }
}

impl From<&str> for Part {
    fn from(text: &str) -> Self {
        Self::Plain(text.to_owned())
    }
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        Self::Plain(text)
    }
}

impl From<&String> for Part {
    fn from(text: &String) -> Self {
        Self::Plain(text.clone())
    }
}

macro_rules! part_from_display {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Part {
            fn from(value: $kind) -> Self {
                Self::Plain(value.to_string())
            }
        }
    )*};
}
part_from_display!(usize, u64, u32, i64, i32, char);

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(vec![text.into()])
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(vec![text.into()])
    }
}

/// Builds a [`Text`] from parts: `text!["run ", code(id), " is red"]`.
#[macro_export]
macro_rules! text {
    ($($part:expr),* $(,)?) => {
        $crate::Text(vec![$($crate::Part::from($part)),*])
    };
}

impl Text {
    /// Appends a part.
    #[must_use]
    pub fn with(mut self, part: impl Into<Part>) -> Self {
        self.0.push(part.into());
        self
    }

    /// Appends another text.
    #[must_use]
    pub fn and(mut self, other: Text) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Whether there is nothing to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|part| match part {
            Part::Plain(text) | Part::Code(text) | Part::Mention(text) | Part::Link { text, .. } => {
                text.trim().is_empty()
            }
        })
    }

    /// The items as code, joined by commas, at most `limit` of them; the rest is counted.
    pub fn list<T: std::fmt::Display>(items: impl IntoIterator<Item = T>, limit: usize) -> Self {
        let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
        let mut text = Self::default();
        for (index, item) in items.iter().take(limit).enumerate() {
            if index > 0 {
                text.0.push(", ".into());
            }
            text.0.push(code(item));
        }
        if items.len() > limit {
            text.0.push(format!(" and {} more", items.len() - limit).into());
        }
        text
    }

    /// For a terminal, a status line or a log: no markup, control characters dropped.
    #[must_use]
    pub fn plain(&self) -> String {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Plain(text) | Part::Code(text) | Part::Link { text, .. } => out.push_str(&printable(text)),
                Part::Mention(login) => {
                    out.push('@');
                    out.push_str(&printable(login));
                }
            }
        }
        out
    }

    /// For a GitHub comment, on one line.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Plain(text) => out.push_str(&escape_markdown(text)),
                Part::Code(text) => out.push_str(&code_span(text)),
                Part::Link { text, url } => out.push_str(&markdown_link(text, url)),
                Part::Mention(login) if login.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') => {
                    out.push('@');
                    out.push_str(login);
                }
                Part::Mention(login) => out.push_str(&code_span(login)),
            }
        }
        out
    }
}

/// Characters that must never reach a reader: controls, and the invisible ones that reorder or hide text.
fn forbidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{2028}' | '\u{2029}' | '\u{00AD}' | '\u{061C}' | '\u{180E}' | '\u{E0000}'..='\u{E007F}')
}

/// Text without forbidden characters; line breaks become one space.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars()
        .filter_map(|c| match c {
            '\n' | '\t' | '\r' => Some(' '),
            c if forbidden(c) => None,
            c => Some(c),
        })
        .collect()
}

/// Escapes text for a GitHub comment so that it is shown literally: no markup, mention, reference or bare link acts.
///
/// A zero-width space breaks what a backslash cannot: GitHub finds mentions (`@x`), references (`#1`, `GH-1`) and bare
/// links (`http://`, `www.`) in the rendered text, after Markdown is done.
#[must_use]
pub fn escape_markdown(text: &str) -> String {
    let text = printable(text);
    let mut out = String::with_capacity(text.len() + 8);
    let chars: Vec<char> = text.chars().collect();
    for (index, &c) in chars.iter().enumerate() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            '&' => out.push_str("&amp;"),
            '@' => out.push_str("@\u{200B}"),
            '#' => out.push_str("\\#\u{200B}"),
            ':' if chars.get(index + 1) == Some(&'/') && chars.get(index + 2) == Some(&'/') => {
                out.push_str(":\u{200B}")
            }
            '.' if index >= 3 && chars[index - 3..index].iter().all(|c| c.eq_ignore_ascii_case(&'w')) => {
                out.push_str(".\u{200B}");
            }
            '-' if index >= 2
                && chars[index - 2].eq_ignore_ascii_case(&'g')
                && chars[index - 1].eq_ignore_ascii_case(&'h') =>
            {
                out.push_str("-\u{200B}");
            }
            // At a line's start these would make a list, a heading rule or a quote; we never start a line with foreign
            // text, but a caller might.
            '-' | '+' | '=' if index == 0 => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// A code span that holds any text: the fence is longer than any run of backticks inside.
#[must_use]
pub fn code_span(text: &str) -> String {
    let text = printable(text);
    if text.trim().is_empty() {
        return "(empty)".to_owned();
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') || (text.starts_with(' ') && text.ends_with(' ')) {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

fn markdown_link(text: &str, url: &str) -> String {
    let safe = url.starts_with("https://")
        && url.len() <= 2000
        && url
            .bytes()
            .all(|b| b.is_ascii_graphic() && !matches!(b, b'<' | b'>' | b'(' | b')' | b'"' | b'\\' | b'`'));
    if safe {
        format!("[{}]({url})", escape_markdown(text))
    } else {
        escape_markdown(text)
    }
}

/// A fenced block that holds any text, for what a reader is to copy. Control characters except line breaks are dropped.
#[must_use]
pub fn fenced_block(text: &str) -> String {
    let body: String = text
        .chars()
        .filter(|c| *c == '\n' || *c == '\t' || !forbidden(*c))
        .collect();
    let longest = body.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}text\n{}\n{fence}", body.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser, Tag};

    /// What a Markdown reader would make of the text: anything that is not plain text or code.
    ///
    /// GitHub's reader knows everything that this one does but `^superscript^`.
    fn active(markdown: &str) -> Vec<String> {
        Parser::new_ext(markdown, Options::all() - Options::ENABLE_SUPERSCRIPT)
            .filter(|event| {
                !matches!(
                    event,
                    Event::Text(_)
                        | Event::Code(_)
                        | Event::SoftBreak
                        | Event::Start(Tag::Paragraph)
                        | Event::End(pulldown_cmark::TagEnd::Paragraph)
                )
            })
            .map(|event| format!("{event:?}"))
            .collect()
    }

    #[test]
    fn hostile_text_is_shown_and_does_not_act() {
        for hostile in [
            "@octocat",
            "a @org/team b",
            "<img src=x onerror=y>",
            "<!-- marker -->",
            "[x](https://evil)",
            "![x](https://evil)",
            "# heading",
            "- item",
            "| a | b |",
            "**bold**",
            "`code`",
            "https://evil.example",
            "www.evil.example",
            "#12 and GH-12 and o/r#3",
            "&lt;b&gt;",
            "~~gone~~",
            "$x$",
            "\u{202E}txt",
            "a\n# b",
            "> quote",
            "1. x",
            "= =",
            "+ x",
        ] {
            let shown = format!("x {}", text![hostile.to_owned()].markdown());
            assert!(
                active(&shown).is_empty(),
                "{hostile:?} -> {shown:?}: {:?}",
                active(&shown)
            );
            assert!(
                !shown.contains("@o") && !shown.contains("#1") && !shown.contains("://"),
                "{shown}"
            );
        }
    }

    #[test]
    fn a_link_with_an_odd_address_is_no_link() {
        assert_eq!(
            text![link("run", "https://x.example/1")].markdown(),
            "[run](https://x.example/1)"
        );
        for bad in [
            "javascript:alert(1)",
            "http://x",
            "https://x)y",
            "https://x y",
            "https://x\"y",
        ] {
            assert_eq!(text![link("run", bad)].markdown(), "run", "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_acts(hostile in "\\PC{0,60}", inner in "[`@#<>\\[\\]()!*_~:/.w &-]{0,30}") {
            for text in [hostile, inner] {
                let shown = format!("x {} y", text![text.clone(), " ", code(&text)].markdown());
                prop_assert!(active(&shown).is_empty(), "{:?} -> {:?}", text, active(&shown));
            }
        }

        #[test]
        fn a_block_holds_its_text(body in "[a`~\\n \\t-]{0,60}") {
            let block = fenced_block(&body);
            let events: Vec<_> = Parser::new(&block).collect();
            prop_assert!(matches!(events.first(), Some(Event::Start(Tag::CodeBlock(_)))));
            prop_assert!(matches!(events.last(), Some(Event::End(pulldown_cmark::TagEnd::CodeBlock))));
            let opened = events.iter().filter(|event| matches!(event, Event::Start(_))).count();
            prop_assert_eq!(opened, 1);
        }
    }
}
