//! Reads the lines under the phrase into items, free text and signature.
//!
//! A line is judged by what its writer meant: a box is a box in any spelling and at any indentation, a heading is a
//! heading in bold or plain. Text belongs to the item or bullet above it where Markdown would say so, or where it is
//! indented below it.

use crate::MAX_ITEMS;
use crate::inline;
use crate::lines::{Doc, LineKind};
use crate::links::{IgnoredLink, WhyIgnored};
use crate::rules::Rules;
use crate::signoff::{BoxState, Detail, DetailHeading, Entry, Item, Note, Section, SignOff, Signature};
use crate::text::tokens;

/// A line that opens an item: where its text begins, and its box.
pub(crate) struct ItemStart<'t> {
    pub state: BoxState,
    pub mark: &'t str,
    pub text: &'t str,
}

/// Reads a line as the start of an item: `- [ ] text` and what people make of it.
pub(crate) fn item_start(line: &str) -> Option<ItemStart<'_>> {
    let trimmed = line.trim_start();
    let after_bullet = strip_bullet(trimmed);
    let has_bullet = after_bullet.is_some();
    let rest = after_bullet.unwrap_or(trimmed);
    let (open, close) = if rest.starts_with("\\[") {
        ("\\[", "\\]")
    } else {
        ("[", "]")
    };
    let inner = rest.strip_prefix(open)?;
    let end = inner.find(close)?;
    let mark = &inner[..end];
    let text = &inner[end + close.len()..];
    if mark.chars().count() > 5 {
        return None;
    }
    let state = box_state(mark)?;
    // `- [x](address)` is a link that is called x; `- [x]: address` defines one.
    if text.starts_with(['(', '[', ':']) || text.trim().is_empty() {
        return None;
    }
    // Without a bullet only the plain spellings count, with a blank behind them.
    if !has_bullet && (state == BoxState::Unclear || !text.starts_with(char::is_whitespace)) {
        return None;
    }
    if state == BoxState::Unclear && !text.starts_with(char::is_whitespace) {
        return None;
    }
    Some(ItemStart {
        state,
        mark,
        text: text.trim(),
    })
}

fn box_state(mark: &str) -> Option<BoxState> {
    match mark.trim() {
        "" => Some(BoxState::Open),
        "x" | "X" | "✓" | "✔" | "✔️" | "✅" | "☑" | "☑️" => Some(BoxState::Ticked),
        "-" | "~" | "o" | "O" | "?" | "!" | "/" | "y" | "Y" | "v" | "V" | "*" | "." | "_" | "xx" | "XX" | "х" | "Х" => {
            Some(BoxState::Unclear)
        }
        other
            if ["n/a", "na", "no", "yes", "ok", "done", "skip"]
                .iter()
                .any(|w| w.eq_ignore_ascii_case(other)) =>
        {
            Some(BoxState::Unclear)
        }
        _ => None,
    }
}

/// The text behind a bullet or a list number.
pub(crate) fn strip_bullet(trimmed: &str) -> Option<&str> {
    if let Some(rest) = trimmed.strip_prefix(['-', '*', '+']) {
        // `-[ ]` lacks its blank, and is meant.
        return (rest.starts_with(char::is_whitespace) || rest.starts_with('[')).then(|| rest.trim_start());
    }
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    if (1..=3).contains(&digits) {
        let rest = trimmed[digits..].strip_prefix(['.', ')'])?;
        return rest.starts_with(char::is_whitespace).then(|| rest.trim_start());
    }
    None
}

/// The text of a line without heading and emphasis marks around it.
fn bare(line: &str) -> &str {
    line.trim()
        .trim_start_matches('#')
        .trim()
        .trim_matches(['*', '_'])
        .trim()
}

/// The texts of the rules as words, made once a body.
struct Vocabulary {
    headings: Vec<Vec<String>>,
    placeholders: Vec<Vec<String>>,
}

impl Vocabulary {
    fn new(rules: &Rules) -> Self {
        let words = |list: &[String]| list.iter().map(|t| tokens(t)).filter(|w| !w.is_empty()).collect();
        Self {
            headings: words(&rules.detail_headings),
            placeholders: words(&rules.placeholders),
        }
    }
}

/// Text in which a heading was found: what stands behind it on the same line.
fn detail_heading<'t>(line: &'t str, vocabulary: &Vocabulary) -> Option<&'t str> {
    let trimmed = line.trim();
    let content = bare(trimmed);
    let (head, rest) = match content.find([':', '：']) {
        Some(at) => {
            let colon = content[at..].chars().next().map_or(1, char::len_utf8);
            (
                &content[..at],
                content[at + colon..].trim_start_matches(['*', '_', ' ']),
            )
        }
        None => (content, ""),
    };
    if head.len() > 200 {
        return None;
    }
    // The whole line, or all before its colon, so that a sentence that mentions the section opens nothing.
    vocabulary.headings.contains(&tokens(head)).then_some(rest)
}

fn signature(line: &str, number: u32, rules: &Rules) -> Option<Signature> {
    let content = line.trim().trim_start_matches(['#', '*', '_', ' ']);
    let at = content.find([':', '：'])?;
    let label = content[..at].trim_matches(['*', '_', ' ']);
    if !rules
        .signature_labels
        .iter()
        .any(|l| l.trim().eq_ignore_ascii_case(label))
    {
        return None;
    }
    let colon = content[at..].chars().next().map_or(1, char::len_utf8);
    let written = content[at + colon..].trim();
    let name = match written.strip_prefix('[').and_then(|r| r.split_once("](")) {
        Some((label, _)) => label,
        None => written,
    };
    let name = name
        .trim_matches(|c: char| c.is_whitespace() || "`*_@<>[]()\"'.,".contains(c))
        .to_owned();
    let is_placeholder = rules
        .signature_placeholders
        .iter()
        .any(|p| p.trim().eq_ignore_ascii_case(&name));
    Some(Signature {
        line: number,
        name,
        is_placeholder,
    })
}

/// A piece of text while its lines are gathered.
struct Piece {
    lines: Vec<(u32, String)>,
    indent: u32,
    bullet: bool,
    heading: bool,
    /// A plain line that ends in a colon.
    lead: bool,
}

enum Open {
    Nothing,
    Item(Piece),
    Note(Piece),
    Entry(Piece),
}

struct Builder<'a, 'b> {
    doc: &'a Doc<'b>,
    rules: &'a Rules,
    vocabulary: Vocabulary,
    section: Section,
    open: Open,
    under: Option<String>,
    /// `under` is a line that ends in a colon: it holds for the bullets right behind it only.
    under_bullets: bool,
    items: Vec<Item>,
    items_cut: bool,
    /// Entries by section; the flag says that they stand behind the last item so far.
    entries: Vec<(Section, Entry)>,
    ignored: Vec<IgnoredLink>,
    detail: Option<(DetailHeading, u32)>,
    placeholder_left: bool,
    signature: Option<Signature>,
}

/// Reads the lines of `doc` from index `from` as a checklist; `line` is where the phrase stands.
pub(crate) fn read_checklist(doc: &Doc<'_>, from: usize, line: u32, copies: usize, rules: &Rules) -> SignOff {
    let mut b = Builder {
        doc,
        rules,
        vocabulary: Vocabulary::new(rules),
        section: Section::Checklist,
        open: Open::Nothing,
        under: None,
        under_bullets: false,
        items: Vec::new(),
        items_cut: false,
        entries: Vec::new(),
        ignored: Vec::new(),
        detail: None,
        placeholder_left: false,
        signature: None,
    };
    let mut after_blank = false;
    for l in doc.lines.iter().skip(from) {
        match l.kind {
            LineKind::Own if l.is_blank() => after_blank = true,
            LineKind::Own => {
                b.own_line(l.number, &l.text, l.indent(), after_blank);
                after_blank = false;
            }
            LineKind::Quote | LineKind::Code => {
                b.foreign_line(l.number, l.raw, l.kind);
                after_blank = true;
            }
        }
    }
    b.close();
    b.finish(line, copies)
}

impl Builder<'_, '_> {
    fn own_line(&mut self, number: u32, text: &str, indent: u32, after_blank: bool) {
        if let Some(start) = item_start(text) {
            self.close();
            if self.items.len() >= MAX_ITEMS {
                self.items_cut = true;
                return;
            }
            let parent = self
                .items
                .iter()
                .rposition(|i| i.indent < indent && i.section == self.section);
            // Only the nearest chain counts: an item at this depth or less in between ends it.
            let parent = parent.filter(|p| self.items[p + 1..].iter().all(|i| i.indent >= indent));
            self.items.push(Item {
                line: number,
                indent,
                parent,
                state: start.state,
                mark: start.mark.to_owned(),
                text: String::new(),
                struck: false,
                links: Vec::new(),
                ignored_links: Vec::new(),
                notes: Vec::new(),
                section: self.section,
            });
            self.open = Open::Item(Piece::new(number, start.text, indent, true));
            return;
        }
        if self.section != Section::Detail
            && let Some(rest) = detail_heading(text, &self.vocabulary)
        {
            self.close();
            self.section = Section::Detail;
            self.under = None;
            self.detail.get_or_insert((DetailHeading::Named, number));
            if !rest.trim().is_empty() {
                self.open = Open::Entry(Piece::new(number, rest, 0, false));
            }
            return;
        }
        if let Some(signature) = signature(text, number, self.rules) {
            self.close();
            self.section = Section::AfterSignature;
            self.under = None;
            self.signature = Some(signature);
            return;
        }
        let trimmed = text.trim();
        if trimmed.len() >= 3 && trimmed.chars().all(|c| matches!(c, '-' | '=' | '_' | '*' | ' ')) {
            self.close();
            return;
        }
        let bullet = strip_bullet(trimmed);
        let marked = trimmed.starts_with('#') || is_bold_line(trimmed);
        let below = self.last_item_indent().is_some_and(|i| indent > i) && !marked;
        let lead = bullet.is_none() && !below && trimmed.ends_with([':', '：']);
        let heading = marked || lead;
        let content = bullet.unwrap_or(trimmed);
        let starts_new = bullet.is_some() || heading || after_blank;
        if !starts_new
            && let Open::Item(p) | Open::Note(p) | Open::Entry(p) = &mut self.open
            && !p.heading
        {
            p.lines.push((number, content.to_owned()));
            return;
        }
        // A bullet or paragraph below an entry's own bullet continues that entry.
        if let Open::Entry(p) = &mut self.open
            && p.bullet
            && indent > p.indent
            && !heading
        {
            p.lines.push((number, content.to_owned()));
            return;
        }
        let in_item = below && matches!(self.open, Open::Item(_) | Open::Note(_));
        self.close();
        let mut piece = Piece::new(number, content, indent, bullet.is_some());
        piece.heading = heading;
        piece.lead = lead && !marked;
        self.open = if in_item { Open::Note(piece) } else { Open::Entry(piece) };
    }

    fn last_item_indent(&self) -> Option<u32> {
        self.items.last().map(|i| i.indent)
    }

    /// Quoted and coded lines say nothing, but their links make good hints.
    fn foreign_line(&mut self, number: u32, raw: &str, kind: LineKind) {
        self.close();
        let content = raw.trim_start_matches([' ', '\t', '>', '-', '*', '+']);
        let read = inline::read(content, &|_| number, &self.doc.references, &self.rules.links);
        let why = if kind == LineKind::Quote {
            WhyIgnored::Quote
        } else {
            WhyIgnored::Code
        };
        self.ignored
            .extend(read.links.into_iter().map(|link| IgnoredLink { link, why }));
        self.ignored
            .extend(read.ignored.into_iter().map(|i| IgnoredLink { why, ..i }));
    }

    fn close(&mut self) {
        let (piece, what) = match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing => return,
            Open::Item(p) => (p, 0),
            Open::Note(p) => (p, 1),
            Open::Entry(p) => (p, 2),
        };
        let read = piece.read(self.doc, self.rules);
        if what < 2 {
            let Some(item) = self.items.last_mut() else { return };
            item.links.extend(read.links);
            item.ignored_links.extend(read.ignored);
            if what == 0 {
                item.text = read.text;
                item.struck = read.struck;
            } else if !read.text.is_empty() {
                item.notes.push(Note {
                    line: piece.line(),
                    text: read.text,
                });
            }
            return;
        }
        self.ignored.extend(read.ignored);
        if self.is_placeholder(&read.text) && read.links.is_empty() {
            self.placeholder_left |= self.section != Section::AfterSignature;
            return;
        }
        if piece.heading && read.links.is_empty() {
            self.under = (!read.text.is_empty()).then_some(read.text);
            self.under_bullets = piece.lead;
            return;
        }
        if read.text.is_empty() && read.links.is_empty() {
            return;
        }
        self.placeholder_left |= self.starts_with_placeholder(&read.text);
        if self.under_bullets && !piece.bullet {
            self.under = None;
        }
        let under = self.under.clone().filter(|_| !piece.heading);
        let entry = Entry {
            line: piece.line(),
            under,
            text: read.text,
            links: read.links,
        };
        self.entries.push((self.section, entry));
    }

    fn is_placeholder(&self, text: &str) -> bool {
        self.vocabulary.placeholders.contains(&tokens(text))
    }

    fn starts_with_placeholder(&self, text: &str) -> bool {
        let words = tokens(text);
        self.vocabulary.placeholders.iter().any(|p| words.starts_with(p))
    }

    fn finish(self, line: u32, copies: usize) -> SignOff {
        let last_item = self.items.iter().map(|i| i.line).max().unwrap_or(0);
        let mut between = Vec::new();
        let mut detail_entries = Vec::new();
        let mut after_signature = Vec::new();
        for (section, entry) in self.entries {
            match section {
                // Without a heading, what stands behind the last item is the detail section.
                Section::Checklist if self.detail.is_none() && entry.line > last_item => detail_entries.push(entry),
                Section::Checklist => between.push(entry),
                Section::Detail => detail_entries.push(entry),
                Section::AfterSignature => after_signature.push(entry),
            }
        }
        let opened = self
            .detail
            .or(detail_entries.first().map(|e| (DetailHeading::Implied, e.line)));
        let detail = opened.map(|(heading, line)| Detail {
            heading,
            line,
            entries: detail_entries,
            placeholder_left: self.placeholder_left,
            ignored_links: self.ignored.into_iter().filter(|i| i.link.line >= line).collect(),
        });
        SignOff {
            line,
            copies,
            items: self.items,
            items_cut: self.items_cut,
            between,
            detail,
            signature: self.signature,
            after_signature,
        }
    }
}

impl Piece {
    fn new(number: u32, text: &str, indent: u32, bullet: bool) -> Self {
        Self {
            lines: vec![(number, text.trim().to_owned())],
            indent,
            bullet,
            heading: false,
            lead: false,
        }
    }

    fn line(&self) -> u32 {
        self.lines.first().map_or(0, |l| l.0)
    }

    fn read(&self, doc: &Doc<'_>, rules: &Rules) -> inline::Inline {
        let mut starts = Vec::with_capacity(self.lines.len());
        let mut fragment = String::new();
        for (_, text) in &self.lines {
            if !fragment.is_empty() {
                fragment.push('\n');
            }
            starts.push(fragment.len());
            fragment.push_str(text.trim_start());
        }
        let line_at = |at: usize| {
            let index = starts.partition_point(|s| *s <= at).saturating_sub(1);
            self.lines.get(index).map_or(0, |l| l.0)
        };
        inline::read(&fragment, &line_at, &doc.references, &rules.links)
    }
}

/// A line that is bold as a whole, which people use for a heading.
fn is_bold_line(trimmed: &str) -> bool {
    let inner = trimmed
        .strip_prefix("**")
        .and_then(|r| r.trim_end_matches(':').strip_suffix("**"));
    inner.is_some_and(|i| !i.is_empty() && !i.contains("**"))
}

/// Whether a line opens the detail section or is the signature.
pub(crate) fn is_section_line(text: &str, rules: &Rules) -> bool {
    detail_heading(text, &Vocabulary::new(rules)).is_some() || signature(text, 0, rules).is_some()
}
