//! A sign-off: its items, its detail section, its signature. How they are read is in `reader`.

use serde::Serialize;

use crate::links::{IgnoredLink, Link};
use crate::template::Template;
use crate::text::collapse;

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
