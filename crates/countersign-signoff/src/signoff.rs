//! A sign-off: its items, its detail section, its signature, read from the lines of a body.

use serde::Serialize;

use crate::MAX_ITEMS;
use crate::inline;
use crate::lines::{Doc, LineKind};
use crate::links::{IgnoredLink, Link, WhyIgnored};
use crate::rules::Rules;
use crate::template::Template;
use crate::text::{collapse, tokens};

/// Whether a box is ticked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BoxState {
    /// `[x]`, `[X]`, `[ x]`, `[x ]`, or a tick sign.
    Ticked,
    /// `[ ]` or `[]`.
    Open,
    /// Something else between the brackets, such as `[-]` or `[n/a]`: it counts as open.
    Unclear,
}

/// Where something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// Between the phrase and the detail section.
    Checklist,
    /// In the detail section.
    Detail,
    /// Behind the signature.
    AfterSignature,
}

/// Text that belongs to an item but is not on its own line: a bullet below it, a paragraph in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Its line, from 1.
    pub line: u32,
    /// Plain text, addresses taken out.
    pub text: String,
}

/// One item with a check box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// Its line, from 1.
    pub line: u32,
    /// Columns before its bullet.
    pub indent: u32,
    /// Index of the item it is nested in.
    pub parent: Option<usize>,
    /// Its box.
    pub state: BoxState,
    /// What stood between the brackets.
    pub mark: String,
    /// Plain text with addresses taken out and labels kept; continuation lines included.
    pub text: String,
    /// Its text is struck out, so that a tick says nothing.
    pub struck: bool,
    /// Links in it and in its notes.
    pub links: Vec<Link>,
    /// What looks like a link in it and is none.
    pub ignored_links: Vec<IgnoredLink>,
    /// What stands below it and belongs to it.
    pub notes: Vec<Note>,
    /// Where it stands.
    pub section: Section,
}

impl Item {
    /// Whether the box is ticked and the text stands.
    pub fn is_ticked(&self) -> bool {
        self.state == BoxState::Ticked && !self.struck
    }
}

/// A bullet or paragraph of free text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its first line, from 1.
    pub line: u32,
    /// The heading or bold line it stands under, within the section.
    pub under: Option<String>,
    /// Plain text, addresses taken out.
    pub text: String,
    /// Links in it.
    pub links: Vec<Link>,
}

/// How the detail section was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DetailHeading {
    /// A line that the rules name: a heading, a bold line or a plain one.
    Named,
    /// No such line; it is the free text behind the last item.
    Implied,
}

/// The detail section: everything up to the signature or the end, items apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Detail {
    /// How it was opened.
    pub heading: DetailHeading,
    /// The line of its heading, or of its first text.
    pub line: u32,
    /// Its bullets and paragraphs; a placeholder alone is none.
    pub entries: Vec<Entry>,
    /// The placeholder is still there.
    pub placeholder_left: bool,
    /// What looks like a link and is none: in code, quoted, struck out, without a scheme.
    pub ignored_links: Vec<IgnoredLink>,
}

impl Detail {
    /// Whether nothing was filled in.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The links of its text, in order.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.entries.iter().flat_map(|e| &e.links)
    }
}

/// The signature line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signature {
    /// Its line, from 1.
    pub line: u32,
    /// The name without `@` and backticks; empty where nothing was written.
    pub name: String,
    /// It is still the placeholder.
    pub is_placeholder: bool,
}

impl Signature {
    /// Whether the name is that login, without case.
    pub fn names(&self, login: &str) -> bool {
        self.name.eq_ignore_ascii_case(login)
    }
}

/// A recognised sign-off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SignOff {
    /// The line of the phrase, from 1.
    pub line: u32,
    /// How many times the phrase opens a checklist in this body; the last one counts.
    pub copies: usize,
    /// The items, in order, wherever they stand under the phrase.
    pub items: Vec<Item>,
    /// There were more items than are kept.
    pub items_cut: bool,
    /// Free text between the items.
    pub between: Vec<Entry>,
    /// The detail section, if there is any text for one.
    pub detail: Option<Detail>,
    /// The signature, if there is one.
    pub signature: Option<Signature>,
    /// Free text behind the signature. It is no part of the detail section.
    pub after_signature: Vec<Entry>,
}

/// A link that the reviewer added: not one that the template's own text contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BeyondLink {
    /// The link.
    pub link: Link,
    /// Where it stands.
    pub section: Section,
}

impl SignOff {
    /// Whether not one box is ticked.
    pub fn is_blank(&self) -> bool {
        !self.items.iter().any(Item::is_ticked)
    }

    /// The links that the reviewer added: those of the detail section's text, and those in items and between them
    /// that the template does not contain (domain guide, section 16: template text must not contribute links).
    /// Links behind the signature come last, with their section, so that a check can refuse them with a reason.
    pub fn links_beyond_template(&self, template: &Template) -> Vec<BeyondLink> {
        let of_template = |l: &Link| template.items.iter().flat_map(|i| &i.links).any(|t| t.same_place(l));
        let mut out: Vec<BeyondLink> = Vec::new();
        for item in &self.items {
            let added = item.links.iter().filter(|l| !of_template(l));
            out.extend(added.map(|l| BeyondLink {
                link: l.clone(),
                section: item.section,
            }));
        }
        let mut add = |entries: &[Entry], section| {
            let links = entries.iter().flat_map(|e| &e.links);
            out.extend(links.map(|l| BeyondLink {
                link: l.clone(),
                section,
            }));
        };
        add(&self.between, Section::Checklist);
        if let Some(detail) = &self.detail {
            add(&detail.entries, Section::Detail);
        }
        add(&self.after_signature, Section::AfterSignature);
        out.sort_by_key(|b| (b.section == Section::AfterSignature, b.link.line));
        out
    }

    /// Text that changes when anything changes that a check may look at, and does not change with line ends, blanks,
    /// bullets, or the case of a tick. Hash it to tell a real edit from an idle one.
    pub fn digest_input(&self) -> String {
        let mut out = String::from("sign-off 1\n");
        let mut put = |label: &str, text: &str| {
            out.push_str(label);
            out.push(' ');
            out.push_str(&collapse(text));
            out.push('\n');
        };
        for item in &self.items {
            let parent = item.parent.map_or(String::new(), |p| p.to_string());
            let mark = if item.is_ticked() { "x" } else { "o" };
            put(&format!("item {mark} {parent}>"), &item.text);
            for link in &item.links {
                put("link", &link.url);
            }
            for note in &item.notes {
                put("note", &note.text);
            }
        }
        let sections = [
            ("between", self.between.as_slice()),
            ("detail", self.detail.as_ref().map_or(&[][..], |d| &d.entries)),
            ("after", self.after_signature.as_slice()),
        ];
        for (label, entries) in sections {
            for entry in entries {
                put(label, entry.under.as_deref().unwrap_or_default());
                put("text", &entry.text);
                for link in &entry.links {
                    put("link", &link.url);
                }
            }
        }
        if let Some(detail) = &self.detail {
            put("placeholder", if detail.placeholder_left { "left" } else { "gone" });
        }
        if let Some(signature) = &self.signature {
            put("signed", &signature.name);
        }
        out
    }
}

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

/// Text in which a heading was found: what stands behind it on the same line.
fn detail_heading<'t>(line: &'t str, rules: &Rules) -> Option<&'t str> {
    let trimmed = line.trim();
    let marked = trimmed.starts_with('#') || trimmed.starts_with("**") || trimmed.starts_with("__");
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
    let words = tokens(head);
    let known = rules
        .detail_headings
        .iter()
        .any(|h| tokens(h) == words && !words.is_empty());
    let colon = head.len() < content.len();
    // A plain line must be the heading and no more, so that a sentence that mentions the section is none.
    (known && (marked || colon || rest.is_empty())).then_some(rest)
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
            && let Some(rest) = detail_heading(text, self.rules)
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
        if !starts_new {
            if let Open::Item(p) | Open::Note(p) | Open::Entry(p) = &mut self.open {
                if !p.heading {
                    p.lines.push((number, content.to_owned()));
                    return;
                }
            }
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
        let words = tokens(text);
        self.rules
            .placeholders
            .iter()
            .any(|p| tokens(p) == words && !words.is_empty())
    }

    fn starts_with_placeholder(&self, text: &str) -> bool {
        let words = tokens(text);
        self.rules
            .placeholders
            .iter()
            .map(|p| tokens(p))
            .any(|p| !p.is_empty() && words.starts_with(&p))
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
    detail_heading(text, rules).is_some() || signature(text, 0, rules).is_some()
}
