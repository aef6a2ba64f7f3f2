//! The lines of a Markdown body and what each of them is: own text, quote, or code; comments taken out.
//!
//! A real parser gives the block structure, since a fence inside a list inside a quote is beyond regular
//! expressions. The lines are read by hand on top of it, since a parser knows one spelling of a check box and people
//! know ten.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Whose text a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// The writer's own text. An indented line counts as own text, even where Markdown would make it code: leading
    /// blanks mean nothing to the people who type them.
    Own,
    /// Quoted: the line has a `>` of its own, or stands in an HTML quote.
    Quote,
    /// In a fenced code block, or in HTML that shows code.
    Code,
}

/// One line of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its number, from 1.
    pub number: u32,
    /// As typed, without the line end.
    pub raw: &'a str,
    /// Without HTML comments.
    pub text: Cow<'a, str>,
    /// Whose text it is.
    pub kind: LineKind,
    /// Markdown shows it as an indented code block.
    pub indented_code: bool,
    /// It begins inside a code span that an earlier line opened.
    pub in_code_span: bool,
}

/// A heading of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// Index of its line.
    pub line: usize,
    /// 1 to 6.
    pub level: u8,
    /// Its text without markup.
    pub text: String,
}

/// A body, line by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doc<'a> {
    /// All lines.
    pub lines: Vec<Line<'a>>,
    /// Headings outside quotes, in order.
    pub headings: Vec<Heading>,
    /// Fenced code blocks outside quotes: indices of the first and the last line of the block, fences included, and
    /// the text between them.
    pub fences: Vec<(usize, usize, String)>,
    /// Link reference definitions, by folded label.
    pub references: BTreeMap<String, String>,
}

const OWN: u8 = 0;
const QUOTE: u8 = 1;
const CODE: u8 = 2;
const INDENTED: u8 = 3;
const COMMENT: u8 = 4;
const HTML_QUOTE: u8 = 5;

/// The markup that is understood, the same everywhere.
pub(crate) fn options() -> Options {
    Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES
}

/// `body` with line ends as `\n`, and without a byte-order mark. What comes after `chars` characters is cut.
pub fn normalise(body: &str, chars: usize) -> String {
    let cut = body.char_indices().nth(chars).map_or(body.len(), |(at, _)| at);
    body[..cut]
        .trim_start_matches('\u{feff}')
        .replace("\r\n", "\n")
        .replace('\r', "\n")
}

/// A link label as references compare it.
pub(crate) fn fold_label(label: &str) -> String {
    crate::text::collapse(label).to_lowercase()
}

impl<'a> Doc<'a> {
    /// Reads a body that went through [`normalise`].
    pub fn read(body: &'a str) -> Self {
        let starts: Vec<usize> = std::iter::once(0)
            .chain(body.match_indices('\n').map(|(i, _)| i + 1))
            .collect();
        let line_of = |at: usize| starts.partition_point(|s| *s <= at).saturating_sub(1);

        let mut mask = vec![OWN; body.len()];
        let mut headings = Vec::new();
        let mut fences = Vec::new();
        let mut html = Vec::new();
        // Lines that begin inside a code span of an earlier line.
        let mut spans = BTreeSet::new();
        let mut quotes = 0usize;
        let mut heading: Option<(usize, u8, String)> = None;
        let mut fence: Option<(Range<usize>, String)> = None;

        let parser = Parser::new_ext(body, options());
        let references = parser
            .reference_definitions()
            .iter()
            .map(|(label, def)| (fold_label(label), def.dest.to_string()))
            .collect();
        for (event, range) in parser.into_offset_iter() {
            match event {
                Event::Start(Tag::BlockQuote(_)) => {
                    // Only the outermost is filled: nested ones would make the work quadratic.
                    if quotes == 0 {
                        fill(&mut mask, range, QUOTE);
                    }
                    quotes += 1;
                }
                Event::End(TagEnd::BlockQuote(_)) => quotes = quotes.saturating_sub(1),
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => {
                    fill(&mut mask, range.clone(), CODE);
                    if quotes == 0 {
                        fence = Some((range, String::new()));
                    }
                }
                Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)) => fill(&mut mask, range, INDENTED),
                Event::End(TagEnd::CodeBlock) => {
                    if let Some((range, text)) = fence.take() {
                        let last = range.end.saturating_sub(1).max(range.start);
                        fences.push((line_of(range.start), line_of(last), text));
                    }
                }
                Event::Start(Tag::Heading { level, .. }) if quotes == 0 => {
                    heading = Some((line_of(range.start), level_number(level), String::new()));
                }
                Event::End(TagEnd::Heading(_)) => {
                    if let Some((line, level, text)) = heading.take() {
                        headings.push(Heading { line, level, text });
                    }
                }
                Event::Text(t) => {
                    if let Some((_, text)) = &mut fence {
                        text.push_str(&t);
                    } else if let Some((_, _, text)) = &mut heading {
                        text.push_str(&t);
                    }
                }
                Event::Code(t) => {
                    if let Some((_, _, text)) = &mut heading {
                        text.push_str(&t);
                    }
                    let last = line_of(range.end.saturating_sub(1));
                    spans.extend(line_of(range.start) + 1..=last);
                }
                Event::Html(_) | Event::InlineHtml(_) => html.push(range),
                _ => {}
            }
        }
        mask_html(body, &html, &mut mask);

        let lines = starts
            .iter()
            .enumerate()
            .map(|(i, start)| {
                let end = starts.get(i + 1).map_or(body.len(), |next| next - 1);
                let number = u32::try_from(i + 1).unwrap_or(u32::MAX);
                Line {
                    in_code_span: spans.contains(&i),
                    ..read_line(body, *start..end, number, &mask)
                }
            })
            .collect();
        Self {
            lines,
            headings,
            fences,
            references,
        }
    }
}

fn level_number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

/// Marks `range`, leaving what is marked already.
fn fill(mask: &mut [u8], range: Range<usize>, value: u8) {
    if let Some(part) = mask.get_mut(range) {
        for m in part {
            if *m == OWN {
                *m = value;
            }
        }
    }
}

/// HTML elements whose content is a quote or code.
const QUOTING: [(&str, u8); 7] = [
    ("blockquote", HTML_QUOTE),
    ("q", HTML_QUOTE),
    ("pre", CODE),
    ("code", CODE),
    ("script", CODE),
    ("style", CODE),
    ("textarea", CODE),
];

/// Marks comments, and what stands between the tags of quotes and code. `html` are the ranges of the parser's HTML
/// events, in order; a comment of many lines comes as many events.
fn mask_html(body: &str, html: &[Range<usize>], mask: &mut [u8]) {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for r in html {
        match joined.last_mut() {
            Some(last) if last.end == r.start => last.end = r.end,
            _ => joined.push(r.clone()),
        }
    }
    // The quoting elements that are open: index into QUOTING, and where the content began.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut marks: Vec<(Range<usize>, u8)> = Vec::new();
    for range in joined {
        let Some(text) = body.get(range.clone()) else { continue };
        let mut at = 0;
        while let Some(found) = text.get(at..).and_then(|rest| rest.find('<')) {
            let tag = at + found;
            let rest = &text[tag..];
            if rest.starts_with("<!--") {
                let len = rest.get(4..).and_then(|r| r.find("-->")).map_or(rest.len(), |i| i + 7);
                for m in &mut mask[range.start + tag..range.start + tag + len] {
                    if *m != QUOTE && *m != CODE {
                        *m = COMMENT;
                    }
                }
                at = tag + len;
                continue;
            }
            let len = rest.find('>').map_or(rest.len(), |i| i + 1);
            let inner = rest[1..len].trim_end_matches('>');
            let (closing, inner) = inner.strip_prefix('/').map_or((false, inner), |i| (true, i));
            let name: String = inner.chars().take_while(char::is_ascii_alphanumeric).take(12).collect();
            if let Some(which) = QUOTING.iter().position(|(n, _)| n.eq_ignore_ascii_case(&name)) {
                if !closing {
                    // Deep nesting is pointless in a comment and is not followed further.
                    if open.len() < 32 {
                        open.push((which, range.start + tag + len));
                    }
                } else if let Some(i) = open.iter().rposition(|(w, _)| *w == which) {
                    let (_, from) = open.remove(i);
                    marks.push((from..range.start + tag, QUOTING[which].1));
                }
            }
            at = tag + len;
        }
    }
    for (which, from) in open {
        marks.push((from..mask.len(), QUOTING[which].1));
    }
    // Outermost first, and nothing twice, so that the work stays linear.
    marks.sort_by_key(|(r, _)| (r.start, std::cmp::Reverse(r.end)));
    let mut done = 0;
    for (range, value) in marks {
        if range.end > done {
            fill(mask, range.start.max(done)..range.end, value);
            done = range.end;
        }
    }
}

fn read_line<'a>(body: &'a str, range: Range<usize>, number: u32, mask: &[u8]) -> Line<'a> {
    let raw = &body[range.clone()];
    let marks = &mask[range];
    let text = if marks.contains(&COMMENT) {
        let kept: String = raw
            .char_indices()
            .filter(|(i, _)| marks.get(*i).is_none_or(|m| *m != COMMENT))
            .map(|(_, c)| c)
            .collect();
        Cow::Owned(kept)
    } else {
        Cow::Borrowed(raw)
    };
    let visible = |i: &usize| marks.get(*i).is_some_and(|m| *m != COMMENT);
    let first = raw
        .char_indices()
        .find(|(i, c)| !c.is_whitespace() && visible(i))
        .map(|(i, _)| i);
    // Where the text begins behind list and quote marks.
    let content = raw
        .char_indices()
        .find(|(i, c)| visible(i) && !(c.is_whitespace() || matches!(c, '>' | '-' | '*' | '+')))
        .map(|(i, _)| i);
    let mark_at = |i: Option<usize>| i.and_then(|i| marks.get(i)).copied().unwrap_or(OWN);
    let kind = if mark_at(first) == CODE || (mark_at(content) == CODE && mark_at(first) == OWN) {
        LineKind::Code
    } else if mark_at(first) == HTML_QUOTE
        || ((mark_at(first) == QUOTE || mark_at(content) == QUOTE) && raw[..content.unwrap_or(raw.len())].contains('>'))
    {
        LineKind::Quote
    } else {
        // Also a lazy continuation of a quote: a line right under it, without a `>` of its own. Markdown shows it in
        // the quote, but its writer typed it as own text.
        LineKind::Own
    };
    Line {
        number,
        raw,
        text,
        kind,
        indented_code: mark_at(first) == INDENTED,
        in_code_span: false,
    }
}

impl Line<'_> {
    /// Whether nothing of it is visible.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Width of its indentation in columns, tabs to the next multiple of four.
    pub fn indent(&self) -> u32 {
        let mut width = 0u32;
        for c in self.text.chars() {
            match c {
                '\t' => width += 4 - width % 4,
                c if c.is_whitespace() => width += 1,
                _ => break,
            }
        }
        width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(body: &str) -> Vec<(LineKind, String)> {
        Doc::read(body)
            .lines
            .iter()
            .map(|l| (l.kind, l.text.to_string()))
            .collect()
    }

    #[test]
    fn quotes_code_and_comments_are_told_apart() {
        let cases: &[(&str, &[LineKind])] = &[
            (
                "a\n> b\n\nc",
                &[LineKind::Own, LineKind::Quote, LineKind::Own, LineKind::Own],
            ),
            ("> a\nb", &[LineKind::Quote, LineKind::Own]),
            ("- > a\n- b", &[LineKind::Quote, LineKind::Own]),
            (
                "> ```\n> a\n> ```",
                &[LineKind::Quote, LineKind::Quote, LineKind::Quote],
            ),
            (
                "```\na\n```\nb",
                &[LineKind::Code, LineKind::Code, LineKind::Code, LineKind::Own],
            ),
            (
                "- x\n  ~~~\n  a\n  ~~~\nb",
                &[
                    LineKind::Own,
                    LineKind::Code,
                    LineKind::Code,
                    LineKind::Code,
                    LineKind::Own,
                ],
            ),
            ("```\na", &[LineKind::Code, LineKind::Code]),
            ("    a", &[LineKind::Own]),
            (
                "<blockquote>\n\na\n\n</blockquote>\n\nb",
                &[
                    LineKind::Own,
                    LineKind::Own,
                    LineKind::Quote,
                    LineKind::Own,
                    LineKind::Own,
                    LineKind::Own,
                    LineKind::Own,
                ],
            ),
            (
                "<pre>\na\n</pre>\nb",
                &[LineKind::Own, LineKind::Code, LineKind::Own, LineKind::Own],
            ),
            ("3 > 2\n> b", &[LineKind::Own, LineKind::Quote]),
        ];
        for (body, expected) in cases {
            let found: Vec<LineKind> = kinds(body).into_iter().map(|(k, _)| k).collect();
            assert_eq!(&found, expected, "{body:?}");
        }
    }

    #[test]
    fn comments_are_taken_out() {
        let seen = |body: &str| kinds(body).into_iter().map(|(_, t)| t).collect::<Vec<_>>();
        assert_eq!(seen("<!-- a -->b"), ["b"]);
        assert_eq!(seen("x <!-- a\nc --> y"), ["x ", " y"]);
        assert_eq!(seen("<!--\na\n\nb\n-->\nc"), ["", "", "", "", "", "c"]);
        assert_eq!(seen("<!-- never closed\na"), ["", ""]);
        assert_eq!(seen("`<!-- code -->`"), ["`<!-- code -->`"]);
        assert_eq!(seen("```\n<!-- a -->\n```"), ["```", "<!-- a -->", "```"]);
    }

    #[test]
    fn structure_is_found() {
        let doc = Doc::read("## One `two`\n\n```md\nx\ny\n```\n\n[Ref]: https://example.org/a\n");
        assert_eq!(
            doc.headings,
            [Heading {
                line: 0,
                level: 2,
                text: "One two".into()
            }]
        );
        assert_eq!(doc.fences, [(2, 5, "x\ny\n".to_owned())]);
        assert_eq!(
            doc.references.get("ref").map(String::as_str),
            Some("https://example.org/a")
        );
        assert_eq!(normalise("\u{feff}a\r\nb\rc", 9), "a\nb\nc");
        assert!(Doc::read("`a\nb` c").lines[1].in_code_span);
        assert!(!Doc::read("`a`\n`b` c").lines[1].in_code_span);
        assert_eq!(Doc::read(" \tx").lines[0].indent(), 4);
    }
}
