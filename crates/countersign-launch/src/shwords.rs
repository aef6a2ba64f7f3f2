//! Splits shell text of pages and recipe fields into simple commands.
//!
//! Documentation is not a program: variables that the block itself assigns are filled in, everything else that a shell
//! would compute stays a named unknown. Broken quoting ends at the end of the text. Linear in the size of the text.

use std::collections::BTreeMap;

use crate::upstream::{MARK, MARK_END};
use crate::value::{Arg, Piece, Source, Text};

/// The most commands that are read from one block.
const MAX_COMMANDS: usize = 2_000;
/// The most words of one command.
const MAX_WORDS: usize = 4_000;
/// The most bytes that one word may grow to by filling in variables.
const MAX_WORD: usize = 64 * 1024;

/// A simple command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Simple {
    /// Its words, with assignments in front.
    pub(crate) argv: Vec<Arg>,
    /// Variables that the block exported or assigned before.
    pub(crate) environment: Vec<(String, Text, Source)>,
    /// The comment lines directly above, without `#`.
    pub(crate) comment: String,
}

/// Reads the commands of a block whose first line is `first_line` of `file`.
pub(crate) fn commands(text: &str, file: &str, first_line: u32) -> Vec<Simple> {
    Reader::new(text, file, first_line).run()
}

/// Reads the commands of a text that a page generates: every word stands on the generator's line.
pub(crate) fn commands_at(text: &str, file: &str, line: u32) -> Vec<Simple> {
    let mut reader = Reader::new(text, file, line);
    reader.step = 0;
    reader.run()
}

/// Reads the commands of a text that is partly unknown, all on one line of a file.
pub(crate) fn commands_in(text: &Text, source: &Source) -> Vec<Simple> {
    let mut marked = String::new();
    for piece in text.pieces() {
        match piece {
            Piece::Known(known) => marked.push_str(&known.replace([MARK, MARK_END], "")),
            Piece::Unknown(name) => {
                marked.push(MARK);
                marked.extend(name.chars().filter(|c| !matches!(*c, MARK | MARK_END)).take(119));
                marked.push(MARK_END);
            }
        }
    }
    commands_at(&marked, &source.file, source.line)
}

/// Splits one field into words, as a shell would without running anything.
pub(crate) fn words(text: &str, file: &str, line: u32) -> Vec<Arg> {
    let mut out = Vec::new();
    for command in commands(text, file, line) {
        out.extend(command.argv);
    }
    out
}

struct Reader {
    chars: Vec<char>,
    pos: usize,
    line: u32,
    /// Lines that a line break counts for.
    step: u32,
    file: std::sync::Arc<str>,
    vars: BTreeMap<String, Text>,
    exports: Vec<(String, Text, Source)>,
}

impl Reader {
    fn new(text: &str, file: &str, first_line: u32) -> Self {
        Reader {
            chars: text.chars().collect(),
            pos: 0,
            line: first_line,
            step: 1,
            file: file.into(),
            vars: BTreeMap::new(),
            exports: Vec::new(),
        }
    }

    fn run(mut self) -> Vec<Simple> {
        let mut out = Vec::new();
        let mut argv: Vec<Arg> = Vec::new();
        let mut comment = String::new();
        while out.len() < MAX_COMMANDS {
            let Some(&c) = self.chars.get(self.pos) else { break };
            match c {
                '\n' => {
                    self.bump();
                    let ended = self.end(&mut argv, &mut comment, &mut out);
                    if !ended && self.chars.get(self.pos) == Some(&'\n') {
                        comment.clear();
                    }
                }
                ' ' | '\t' | '\r' => self.bump(),
                '\\' if matches!(self.chars.get(self.pos + 1), Some('\n')) => {
                    self.bump();
                    self.bump();
                    self.continuation_comments();
                }
                // A backslash with trailing blanks is a continuation to every author who wrote one.
                '\\' if self.blank_to_newline(self.pos + 1) => {
                    while self.chars.get(self.pos).is_some_and(|c| *c != '\n') {
                        self.bump();
                    }
                    self.bump();
                    self.continuation_comments();
                }
                '#' => {
                    let mut text = String::new();
                    while self.chars.get(self.pos).is_some_and(|c| *c != '\n') {
                        text.push(self.chars[self.pos]);
                        self.bump();
                    }
                    if argv.is_empty() {
                        if !comment.is_empty() {
                            comment.push(' ');
                        }
                        comment.push_str(text.trim_start_matches('#').trim());
                    }
                }
                ';' | '|' | '&' | '(' | ')' => {
                    // `2>&1` and `&>` are redirections, not separators.
                    self.bump();
                    self.end(&mut argv, &mut comment, &mut out);
                }
                '<' if self.placeholder().is_none() => self.redirection(),
                '>' => self.redirection(),
                _ => {
                    let line = self.line;
                    let word = self.word();
                    // `2>` : a file descriptor, not a word.
                    let descriptor = word
                        .as_known()
                        .is_some_and(|w| w.len() == 1 && w.chars().all(|c| c.is_ascii_digit()))
                        && matches!(self.chars.get(self.pos), Some('>' | '<'));
                    if !descriptor && argv.len() < MAX_WORDS {
                        argv.push(Arg::new(
                            word,
                            Source {
                                file: self.file.clone(),
                                line,
                            },
                        ));
                    }
                }
            }
        }
        self.end(&mut argv, &mut comment, &mut out);
        out
    }

    fn bump(&mut self) {
        if self.chars.get(self.pos) == Some(&'\n') {
            self.line = self.line.saturating_add(self.step);
        }
        self.pos += 1;
    }

    fn blank_to_newline(&self, from: usize) -> bool {
        let rest = &self.chars[from.min(self.chars.len())..];
        let blanks = rest.iter().take_while(|c| matches!(c, ' ' | '\t' | '\r')).count();
        blanks > 0 && rest.get(blanks) == Some(&'\n')
    }

    /// Comment lines between continued lines: a shell would end the command there, authors do not mean to.
    fn continuation_comments(&mut self) {
        loop {
            let rest = &self.chars[self.pos.min(self.chars.len())..];
            let blanks = rest.iter().take_while(|c| matches!(c, ' ' | '\t')).count();
            if rest.get(blanks) != Some(&'#') {
                return;
            }
            while self.chars.get(self.pos).is_some_and(|c| *c != '\n') {
                self.bump();
            }
            self.bump();
        }
    }

    /// Length of a page's placeholder such as `<node-ip>` that begins here, up to its closing bracket.
    fn placeholder(&self) -> Option<usize> {
        let rest = &self.chars[self.pos..];
        if !rest.get(1).is_some_and(|c| c.is_alphabetic() || *c == '$') {
            return None;
        }
        let n = rest.iter().take(80).position(|c| *c == '>')?;
        rest[1..n]
            .iter()
            .all(|c| c.is_alphanumeric() || " -_./$".contains(*c))
            .then_some(n)
    }

    fn redirection(&mut self) {
        while matches!(self.chars.get(self.pos), Some('>' | '<' | '&')) {
            self.bump();
        }
        while matches!(self.chars.get(self.pos), Some(' ' | '\t')) {
            self.bump();
        }
        let _ = self.word();
    }

    /// Ends a command; whether there was one.
    fn end(&mut self, argv: &mut Vec<Arg>, comment: &mut String, out: &mut Vec<Simple>) -> bool {
        if argv.is_empty() {
            return false;
        }
        let words = std::mem::take(argv);
        let said = std::mem::take(comment);
        let assigns = |w: &Arg| -> Option<(String, Text)> {
            let (name, value) = w.text.split_once('=')?;
            let name = name.as_known()?.to_owned();
            crate::engine::is_assignment_word(&format!("{name}=")).then_some((name, value))
        };
        let first = words[0].text.as_known().unwrap_or("").to_owned();
        let export = first == "export";
        let all: Vec<_> = words
            .iter()
            .skip(usize::from(export))
            .map(|w| (w, assigns(w)))
            .collect();
        if !all.is_empty() && all.iter().all(|(_, a)| a.is_some()) {
            for (word, assignment) in all {
                let Some((name, value)) = assignment else { continue };
                self.vars.insert(name.clone(), value.clone());
                if export {
                    self.exports.push((name, value, word.source.clone()));
                }
            }
            return true;
        }
        out.push(Simple {
            argv: words,
            environment: self.exports.clone(),
            comment: said,
        });
        true
    }

    fn word(&mut self) -> Text {
        let mut out = Text::default();
        let mut size = 0usize;
        let mut push = |out: &mut Text, text: &str| {
            if size < MAX_WORD {
                size += text.len();
                out.push_known(text);
            }
        };
        let mut buf = String::new();
        while let Some(&c) = self.chars.get(self.pos) {
            match c {
                ' ' | '\t' | '\r' | '\n' | ';' | '|' | '&' | '(' | ')' => break,
                '>' => break,
                // `<ip>` inside or as a word of a page.
                '<' => {
                    let Some(n) = self.placeholder() else { break };
                    let name: String = self.chars[self.pos + 1..self.pos + n].iter().collect();
                    push(&mut out, &std::mem::take(&mut buf));
                    out.push_unknown(format!("<{name}>"));
                    self.pos += n + 1;
                }
                // An unknown that a page's generator left in its command.
                MARK => {
                    self.bump();
                    let name: String = self.chars[self.pos..]
                        .iter()
                        .take_while(|c| **c != MARK_END)
                        .take(120)
                        .collect();
                    push(&mut out, &std::mem::take(&mut buf));
                    self.pos += name.chars().count() + 1;
                    out.push_unknown(name);
                }
                '\\' => match self.chars.get(self.pos + 1) {
                    Some('\n') => {
                        if buf.is_empty() && out.is_empty() {
                            break;
                        }
                        self.bump();
                        self.bump();
                        break;
                    }
                    Some(next) => {
                        buf.push(*next);
                        self.bump();
                        self.bump();
                    }
                    None => self.bump(),
                },
                '\'' => {
                    self.bump();
                    while let Some(&c) = self.chars.get(self.pos) {
                        self.bump();
                        if c == '\'' {
                            break;
                        }
                        buf.push(c);
                    }
                }
                '"' => {
                    self.bump();
                    while let Some(&c) = self.chars.get(self.pos) {
                        match c {
                            '"' => {
                                self.bump();
                                break;
                            }
                            '\\' => {
                                self.bump();
                                if let Some(&next) = self.chars.get(self.pos) {
                                    if !matches!(next, '"' | '\\' | '$' | '`' | '\n') {
                                        buf.push('\\');
                                    }
                                    if next != '\n' {
                                        buf.push(next);
                                    }
                                    self.bump();
                                }
                            }
                            '$' => {
                                push(&mut out, &std::mem::take(&mut buf));
                                let value = self.dollar();
                                out.push(&value);
                            }
                            _ => {
                                buf.push(c);
                                self.bump();
                            }
                        }
                    }
                    // An empty quoted word is a word.
                    if buf.is_empty() && out.is_empty() {
                        push(&mut out, "");
                    }
                }
                '$' => {
                    push(&mut out, &std::mem::take(&mut buf));
                    let value = self.dollar();
                    out.push(&value);
                }
                _ => {
                    buf.push(c);
                    self.bump();
                }
            }
        }
        push(&mut out, &buf);
        // Progress is certain: a word that began on a separator consumes it.
        if out.is_empty() && matches!(self.chars.get(self.pos), Some('<')) {
            self.bump();
        }
        out
    }

    /// `$NAME`, `${NAME...}`, `$(...)`: the value, if this block assigned it, else an unknown.
    fn dollar(&mut self) -> Text {
        self.bump();
        let start = self.pos;
        match self.chars.get(self.pos) {
            Some('{') => {
                self.skip_pair('{', '}');
                let inner: String = self.chars[start + 1..self.pos.saturating_sub(1).max(start + 1)]
                    .iter()
                    .collect();
                let name: String = inner
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .collect();
                if let Some(value) = self.vars.get(&name) {
                    return value.clone();
                }
                match inner[name.len()..]
                    .strip_prefix(":-")
                    .or_else(|| inner[name.len()..].strip_prefix('-'))
                {
                    Some(default) if !default.contains('$') => Text::known(default.trim_matches(['"', '\''])),
                    _ => Text::unknown(if name.is_empty() { inner } else { name }),
                }
            }
            Some('(') => {
                self.skip_pair('(', ')');
                let inner: String = self.chars[start..self.pos].iter().take(60).collect();
                Text::unknown(inner)
            }
            _ => {
                while self
                    .chars
                    .get(self.pos)
                    .is_some_and(|c| c.is_ascii_alphanumeric() || *c == '_')
                {
                    self.pos += 1;
                }
                let name: String = self.chars[start..self.pos].iter().collect();
                if name.is_empty() {
                    return Text::known("$");
                }
                self.vars.get(&name).cloned().unwrap_or_else(|| Text::unknown(name))
            }
        }
    }

    fn skip_pair(&mut self, open: char, close: char) {
        let mut depth = 0usize;
        while let Some(&c) = self.chars.get(self.pos) {
            self.bump();
            if c == open {
                depth += 1;
            } else if c == close {
                depth -= 1;
                if depth == 0 {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> Vec<String> {
        commands(text, "p", 10)
            .iter()
            .map(|c| {
                c.argv
                    .iter()
                    .map(|a| format!("{}@{}", a.text, a.source.line))
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect()
    }

    #[test]
    fn continuations_comments_quotes_and_variables() {
        let text = "export M=org/Model\n# on H200\nvllm serve $M \\\n  # a remark\n  --tp 8 \\ \n  --spec '{\"a\": 1}' \"x $Y\" > log 2>&1 &\npip list | grep vllm";
        assert_eq!(
            shown(text),
            [
                "vllm@12 serve@12 org/Model@12 --tp@14 8@14 --spec@15 {\"a\": 1}@15 x ${Y}@15",
                "pip@16 list@16",
                "grep@16 vllm@16"
            ]
        );
        let c = &commands(text, "p", 10)[0];
        assert_eq!(c.comment, "on H200");
        assert_eq!(c.environment[0].0, "M");
    }

    #[test]
    fn placeholders_are_unknowns() {
        assert_eq!(
            shown("a --host <node0-ip>:20000 --rank <node rank>"),
            ["a@10 --host@10 ${<node0-ip>}:20000@10 --rank@10 ${<node rank>}@10"]
        );
        assert_eq!(
            shown("a ${X:-8} ${Y} $(date +%s) `b`"),
            ["a@10 8@10 ${Y}@10 ${(date +%s)}@10 `b`@10"]
        );
    }

    proptest! {
        #[test]
        fn never_panics_and_ends(text in "[a-z$\\{\\}()<>'\"\\\\ \n#&;|=-]{0,200}") {
            let _ = commands(&text, "p", 1);
        }
    }
}
