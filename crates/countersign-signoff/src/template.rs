//! The trusted checklist template, read from the file that describes it.
//!
//! The file has a heading ("Template") and under it the checklist, in a fence or, in older versions, bare (domain
//! guide, section 16). The text in the fence is what people copy, so it is read exactly as a sign-off is.

use serde::Serialize;
use thiserror::Error;

use crate::MAX_BODY_CHARS;
use crate::lines::{self, Doc};
use crate::links::Link;
use crate::reader;
use crate::recognise;
use crate::rules::Rules;
use crate::signoff::Item;
use crate::text::{self, Phrase};

/// Why a template cannot be used. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// Longer than a comment may be, so nobody could post it.
    #[error("the template file is longer than {limit} characters; shorten it")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// No line in it is a checklist item.
    #[error("no checklist item is found {}; write the items under the template's heading, each as `- [ ] text`", at(.line))]
    NoItems {
        /// The line of the template's heading, where there is one.
        line: Option<u32>,
    },
}

fn at(line: &Option<u32>) -> String {
    line.map_or_else(
        || "in the file".to_owned(),
        |l| format!("under the heading in line {l}"),
    )
}

/// One item of the template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TemplateItem {
    /// The id that the rules give it.
    pub id: Option<String>,
    /// A short name for people: from the rules, else the beginning of its text.
    pub title: String,
    /// Its line in the file, from 1.
    pub line: u32,
    /// Index of the item it is nested in.
    pub parent: Option<usize>,
    /// Plain text, addresses taken out.
    pub text: String,
    /// Its lines as they are in the template, ready to paste.
    pub markdown: String,
    /// The links of its text.
    pub links: Vec<Link>,
    /// It may stay open (`conditional_item_words`).
    pub conditional: bool,
    /// Its words.
    #[serde(skip)]
    pub(crate) words: Vec<String>,
    /// Index of its rule.
    #[serde(skip)]
    pub(crate) rule: Option<usize>,
}

/// A template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Template {
    /// Its items in order.
    pub items: Vec<TemplateItem>,
    /// The line of the phrase in the file, from 1; `None` where the template does not open with the phrase, so that
    /// no copy of it can be recognised.
    pub phrase_line: Option<u32>,
    /// The whole text to copy.
    pub text: String,
}

impl Template {
    /// Reads a template file.
    ///
    /// # Errors
    /// Where the file is too long, or holds no checklist item.
    pub fn parse(file: &str, rules: &Rules) -> Result<Self, TemplateError> {
        if file.chars().nth(MAX_BODY_CHARS).is_some() {
            return Err(TemplateError::TooLong { limit: MAX_BODY_CHARS });
        }
        let file = lines::normalise(file, MAX_BODY_CHARS);
        let doc = Doc::read(&file);
        let named = |text: &str| {
            rules
                .template_headings
                .iter()
                .any(|h| text::tokens(h) == text::tokens(text))
        };
        let heading = doc.headings.iter().find(|h| named(&h.text));
        // The section under the heading ends with the next heading of its own rank; the detail section's heading is
        // of a lower one.
        let (from, to) = heading.map_or((0, doc.lines.len()), |h| {
            let next = doc.headings.iter().find(|n| n.line > h.line && n.level <= h.level);
            (h.line + 1, next.map_or(doc.lines.len(), |n| n.line))
        });
        let fences = doc.fences.iter().filter(|(a, b, _)| *a >= from && *b <= to);
        let mut candidates: Vec<(usize, String)> = fences.map(|(a, _, text)| (a + 1, text.clone())).collect();
        let bare: Vec<&str> = doc
            .lines
            .get(from..to)
            .unwrap_or_default()
            .iter()
            .map(|l| l.raw)
            .collect();
        candidates.push((from, bare.join("\n")));
        let mut found: Vec<Self> = candidates
            .iter()
            .filter_map(|(offset, t)| Self::of_block(t, *offset, rules))
            .collect();
        let best = found.iter().position(|t| t.phrase_line.is_some()).unwrap_or(0);
        if found.is_empty() {
            return Err(TemplateError::NoItems {
                line: heading.map(|h| doc.lines[h.line].number),
            });
        }
        Ok(found.swap_remove(best))
    }

    /// Reads the text that people copy; `offset` lines of the file stand before it.
    fn of_block(block: &str, offset: usize, rules: &Rules) -> Option<Self> {
        let block = block.trim_end_matches('\n');
        let doc = Doc::read(block);
        let phrase = text::collapse(&rules.phrase);
        let opening = doc.lines.iter().position(|l| recognise::opens(l, &phrase));
        let from = opening.map_or(0, |i| i + 1);
        let read = reader::read_checklist(&doc, from, 1, 1, rules);
        if read.items.is_empty() {
            return None;
        }
        let words: Vec<Vec<String>> = read.items.iter().map(|i| text::tokens(&i.text)).collect();
        let given = give_rules(&words, rules);
        let conditional = Phrase::list(&rules.conditional_item_words);
        let items = read.items.iter().zip(words).zip(given).map(|((item, words), rule)| {
            let known = rule.and_then(|r| rules.items.get(r));
            TemplateItem {
                id: known.map(|r| r.id.clone()),
                title: known.map_or_else(|| text::excerpt(&item.text, 60), |r| r.shown().to_owned()),
                line: item.line.saturating_add(u32::try_from(offset).unwrap_or(u32::MAX)),
                parent: item.parent,
                text: item.text.clone(),
                markdown: lines_of(&doc, item, rules),
                links: item.links.clone(),
                conditional: text::earliest(&conditional, &words).is_some(),
                words,
                rule,
            }
        });
        Some(Self {
            items: items.collect(),
            phrase_line: opening.map(|i| u32::try_from(i + 1 + offset).unwrap_or(u32::MAX)),
            text: block.to_owned(),
        })
    }
}

/// The item's lines, with the bullets under it, as they are.
fn lines_of(doc: &Doc<'_>, item: &Item, rules: &Rules) -> String {
    let first = item.line as usize - 1;
    let more = doc.lines.iter().skip(first + 1).take_while(|l| {
        let detached = l.is_blank() || reader::item_start(&l.text).is_some() || l.indent() <= item.indent;
        !detached && !reader::is_section_line(&l.text, rules)
    });
    let mut out = doc
        .lines
        .get(first)
        .map_or(String::new(), |l| l.raw.trim_end().to_owned());
    for line in more {
        out.push('\n');
        out.push_str(line.raw.trim_end());
    }
    out
}

/// Gives rules to items, one to one: where an anchor of a rule comes earliest, there the rule belongs. An item that
/// mentions another's word in passing does so late.
fn give_rules(items: &[Vec<String>], rules: &Rules) -> Vec<Option<usize>> {
    let mut places: Vec<(usize, usize, usize)> = Vec::new();
    for (r, rule) in rules.items.iter().enumerate() {
        let anchors = Phrase::list(&rule.anchors);
        let must = Phrase::list(&rule.must);
        for (i, words) in items.iter().enumerate() {
            if let Some(at) = text::earliest(&anchors, words)
                && (must.is_empty() || text::earliest(&must, words).is_some())
            {
                places.push((at, r, i));
            }
        }
    }
    places.sort_unstable();
    let mut given = vec![None; items.len()];
    let mut used = vec![false; rules.items.len()];
    for (_, r, i) in places {
        if given[i].is_none() && !used[r] {
            given[i] = Some(r);
            used[r] = true;
        }
    }
    given
}
