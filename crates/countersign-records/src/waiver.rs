//! Waivers: the file in which a pull request explains a patch of the serving engine (domain guide 11).
//!
//! A waiver is filled when it has every part, each with text of its own, and an upstream link. Whether it covers the
//! patch is for the caller: [`Waiver::names`] says which files it mentions.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex::Regex;
use serde::{Deserialize, Serialize};

/// Largest waiver that is read, in bytes; the rest is not looked at, and the waiver is not filled.
pub const MAX_BYTES: usize = 256 << 10;

/// What a waiver must have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WaiverRules {
    /// The parts, each a section.
    pub parts: Vec<PartRule>,
    /// Prefixes of links that count as upstream, for example `https://github.com/owner/`.
    pub upstream: Vec<String>,
    /// Words that mark a text nobody has filled in yet, for example `TODO`.
    pub placeholders: Vec<String>,
}

/// One part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PartRule {
    /// Name, for messages.
    pub id: String,
    /// All words of one of these lists occur in the heading, in any order and case.
    pub heading: Vec<Vec<String>>,
    /// Least number of words under the heading.
    pub least_words: usize,
}

/// A part as found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Name of the rule.
    pub id: String,
    /// Line of the heading, from 1; none where the part is missing.
    pub line: Option<usize>,
    /// Words under the heading.
    pub words: usize,
    /// It is there, has enough words, and no placeholder.
    pub filled: bool,
    /// Why not.
    pub why: Option<String>,
}

/// A waiver as read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiver {
    /// Number in the title, if the title has one.
    pub number: Option<u64>,
    /// The parts of the rules, in their order.
    pub parts: Vec<Part>,
    /// Upstream links, in order, without repetition.
    pub upstream: Vec<String>,
    /// Paths and file names in links and code spans, in order, without repetition.
    pub files: Vec<String>,
    /// The file was larger than is read.
    pub cut: bool,
}

impl Waiver {
    /// Reads a waiver.
    #[must_use]
    pub fn read(text: &str, rules: &WaiverRules) -> Waiver {
        let end = (0..=MAX_BYTES.min(text.len()))
            .rev()
            .find(|i| text.is_char_boundary(*i))
            .unwrap_or(0);
        let sections = sections(&text[..end]);
        let title = sections.first().map(|s| s.heading.as_str()).unwrap_or_default();
        let mut out = Waiver {
            number: title.split('#').skip(1).find_map(leading_number),
            parts: Vec::new(),
            upstream: Vec::new(),
            files: Vec::new(),
            cut: end < text.len(),
        };
        for rule in &rules.parts {
            out.parts.push(part(rule, &sections, rules));
        }
        for section in &sections {
            for link in &section.links {
                let upstream = rules
                    .upstream
                    .iter()
                    .any(|p| link.starts_with(p.as_str()) && link.len() > p.len());
                if upstream && !out.upstream.contains(link) {
                    out.upstream.push(link.clone());
                }
            }
            for name in section.links.iter().chain(&section.codes).flat_map(|t| file_names(t)) {
                if !out.files.contains(&name) {
                    out.files.push(name);
                }
            }
        }
        out
    }

    /// Whether it is filled: every part, an upstream link, and read to its end.
    #[must_use]
    pub fn filled(&self) -> bool {
        !self.cut && !self.upstream.is_empty() && self.parts.iter().all(|p| p.filled)
    }

    /// What is missing, for people.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let parts = self.parts.iter().filter(|p| !p.filled);
        let mut out: Vec<String> = parts
            .map(|p| p.why.clone().map_or_else(|| p.id.clone(), |w| format!("{}: {w}", p.id)))
            .collect();
        if self.upstream.is_empty() {
            out.push("a link to the upstream pull request or issue".into());
        }
        if self.cut {
            out.push(format!("the file is longer than the {MAX_BYTES} bytes that are read"));
        }
        out
    }

    /// How it names the file, the closest way first.
    #[must_use]
    pub fn names(&self, path: &str) -> Option<Naming> {
        if self.files.iter().any(|name| name == path) {
            return Some(Naming::Path);
        }
        let ends = |name: &String| path.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('/'));
        self.files.iter().any(ends).then_some(Naming::Ending)
    }
}

/// How a waiver names a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Naming {
    /// By its whole path.
    Path,
    /// By its name, or the end of its path; another file could be meant.
    Ending,
}

#[derive(Default)]
struct Section {
    heading: String,
    line: usize,
    level: u8,
    text: String,
    links: Vec<String>,
    codes: Vec<String>,
}

/// The document cut at its headings; the text before the first one is a section without heading.
fn sections(text: &str) -> Vec<Section> {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(text.match_indices('\n').map(|(i, _)| i + 1))
        .collect();
    let mut out: Vec<Section> = Vec::new();
    let mut current = Section {
        line: 1,
        ..Section::default()
    };
    let mut in_heading = false;
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                let line = starts.partition_point(|s| *s <= range.start);
                let done = std::mem::replace(
                    &mut current,
                    Section {
                        line,
                        level: level as u8,
                        ..Section::default()
                    },
                );
                if !done.heading.is_empty() || !done.text.trim().is_empty() {
                    out.push(done);
                }
                in_heading = true;
            }
            Event::End(TagEnd::Heading(_)) => in_heading = false,
            Event::Start(Tag::Link { dest_url, .. }) => current.links.push(dest_url.to_string()),
            Event::Text(piece) => {
                let target = if in_heading {
                    &mut current.heading
                } else {
                    &mut current.text
                };
                target.push_str(&piece);
            }
            Event::Code(piece) => {
                current.codes.push(piece.to_string());
                let target = if in_heading {
                    &mut current.heading
                } else {
                    &mut current.text
                };
                target.push_str(&piece);
            }
            Event::SoftBreak | Event::HardBreak | Event::End(_) if !in_heading => current.text.push(' '),
            _ => {}
        }
    }
    out.push(current);
    // Bare addresses are text to the parser.
    if let Ok(address) = Regex::new(r"https?://[^\s)>\]|,;`]+") {
        for section in &mut out {
            let found: Vec<String> = address
                .find_iter(&section.text)
                .map(|m| m.as_str().trim_end_matches(['.', '*', ':']).to_owned())
                .collect();
            section.links.extend(found);
        }
    }
    out
}

fn leading_number(text: &str) -> Option<u64> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn part(rule: &PartRule, sections: &[Section], rules: &WaiverRules) -> Part {
    let lower = |text: &str| text.to_lowercase();
    // The title is not a part.
    let found = sections.iter().enumerate().find(|(_, s)| {
        let heading = lower(&s.heading);
        s.level > 1
            && rule
                .heading
                .iter()
                .any(|words| words.iter().all(|w| heading.contains(&lower(w))))
    });
    let Some((index, section)) = found else {
        return Part {
            id: rule.id.clone(),
            line: None,
            words: 0,
            filled: false,
            why: Some("the section is missing".into()),
        };
    };
    // Deeper headings below belong to the part.
    let below = sections[index + 1..].iter().take_while(|s| s.level > section.level);
    let text: String = std::iter::once(section)
        .chain(below)
        .map(|s| format!("{} ", s.text))
        .collect();
    let words = text
        .split_whitespace()
        .filter(|w| w.chars().any(char::is_alphanumeric))
        .count();
    let placeholder = rules.placeholders.iter().find(|p| lower(&text).contains(&lower(p)));
    let why = match placeholder {
        Some(word) => Some(format!("the placeholder {word:?} is still there")),
        None if words < rule.least_words => Some(format!("{words} words, at least {} are needed", rule.least_words)),
        None => None,
    };
    Part {
        id: rule.id.clone(),
        line: Some(section.line),
        words,
        filled: why.is_none(),
        why,
    }
}

/// Words of a code span or link target that look like a path or a file name.
fn file_names(text: &str) -> Vec<String> {
    if text.contains("://") {
        return Vec::new();
    }
    text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '(' | ')' | '$' | '`' | '=' | ','))
        .map(|word| {
            word.trim_start_matches("../")
                .trim_start_matches("./")
                .trim_start_matches('/')
                .trim_end_matches(['.', ':'])
        })
        .filter(|word| {
            let name = word.rsplit('/').next().unwrap_or_default();
            let ending = name.rsplit_once('.').is_some_and(|(stem, ext)| {
                !stem.is_empty() && (1..=5).contains(&ext.len()) && ext.bytes().all(|b| b.is_ascii_alphabetic())
            });
            ending && word.len() <= 512
        })
        .map(str::to_owned)
        .collect()
}
