//! Looks for what a sign-off says about an item that is not ticked.
//!
//! Generous, not blind: text counts for an item only where it talks about that item, by the words that the rules give
//! it. Whether that is enough is the check's decision, so the passage is handed over.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::rules::Rules;
use crate::signoff::{Entry, SignOff};
use crate::template::Template;
use crate::text::{self, Phrase};

/// Where an explanation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// On the item itself, behind its text or below it.
    Item,
    /// Between the items.
    Between,
    /// In the detail section.
    Detail,
}

/// What a sign-off says about an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "found", rename_all = "snake_case")]
pub enum Explanation {
    /// A passage talks about the item.
    Named {
        /// The passage, shortened.
        excerpt: String,
        /// Its line, from 1.
        line: u32,
        /// Where it stands.
        place: Place,
        /// It reads like a reason (`explanation_cues`), not only like a mention.
        has_reason: bool,
    },
    /// There is text in the detail section, but none about this item.
    GeneralOnly,
    /// There is no text at all.
    None,
}

impl Explanation {
    /// Whether a passage talks about the item.
    pub fn is_named(&self) -> bool {
        matches!(self, Self::Named { .. })
    }
}

const EXCERPT: usize = 160;
/// A topic within so many words of a passage's beginning is what the passage is about.
const LEAD: usize = 8;

pub(crate) fn explain(
    template: &Template,
    index: usize,
    signoff: &SignOff,
    matched: Option<usize>,
    rules: &Rules,
) -> Explanation {
    let cues = Phrase::list(&rules.explanation_cues);
    if let Some(found) = matched.and_then(|s| on_item(template, index, signoff, s, &cues)) {
        return found;
    }
    let topics = topics(template, index, rules);
    let detail = signoff
        .detail
        .iter()
        .flat_map(|d| &d.entries)
        .map(|e| (e, Place::Detail));
    let between = signoff.between.iter().map(|e| (e, Place::Between));
    let mut best: Option<(u8, Explanation)> = None;
    for (entry, place) in detail.chain(between) {
        let Some((lead, has_reason)) = about(entry, &topics, &cues) else {
            continue;
        };
        let rank = u8::from(has_reason) * 2 + u8::from(lead);
        if best.as_ref().is_none_or(|(r, _)| rank > *r) {
            let excerpt = text::excerpt(&shown(entry), EXCERPT);
            best = Some((
                rank,
                Explanation::Named {
                    excerpt,
                    line: entry.line,
                    place,
                    has_reason,
                },
            ));
        }
    }
    let any_text = signoff.detail.as_ref().is_some_and(|d| !d.is_empty()) || !signoff.between.is_empty();
    match best {
        Some((_, found)) => found,
        None if any_text => Explanation::GeneralOnly,
        None => Explanation::None,
    }
}

/// What was written on the item itself, beyond the template's text: a remark, a run, a note below.
fn on_item(template: &Template, index: usize, signoff: &SignOff, s: usize, cues: &[Phrase]) -> Option<Explanation> {
    let ours = template.items.get(index)?;
    let item = signoff.items.get(s)?;
    let words = text::tokens(&item.text);
    let named = |excerpt: &str, line: u32, has_reason: bool| {
        let excerpt = text::excerpt(
            excerpt.trim_matches([' ', '—', '–', '-', ':', ',', '.', '(', ')']),
            EXCERPT,
        );
        Some(Explanation::Named {
            excerpt,
            line,
            place: Place::Item,
            has_reason,
        })
    };
    if let Some(rest) = words.strip_prefix(ours.words.as_slice()) {
        let reason = text::earliest(cues, rest).is_some();
        if reason || rest.len() >= 3 {
            let tail = item
                .text
                .get(ours.text.len()..)
                .filter(|_| item.text.starts_with(&ours.text));
            return named(tail.unwrap_or(&item.text), item.line, reason);
        }
    } else {
        // Reworded: only words of its own that read like a reason count.
        let own: Vec<String> = words.iter().filter(|w| !ours.words.contains(w)).cloned().collect();
        if text::earliest(cues, &own).is_some() && item.text.len() > 3 {
            return named(&item.text, item.line, true);
        }
    }
    let mark = item.mark.trim();
    if mark.eq_ignore_ascii_case("n/a") || mark.eq_ignore_ascii_case("na") {
        return named(mark, item.line, true);
    }
    let says = |n: &&crate::signoff::Note| {
        let words = text::tokens(&n.text);
        !words.is_empty() && !ours_has(ours.markdown.as_str(), &words)
    };
    if let Some(note) = item.notes.iter().find(says) {
        let reason = text::earliest(cues, &text::tokens(&note.text)).is_some();
        return named(&note.text, note.line, reason);
    }
    let added = item.links.iter().find(|l| !ours.links.iter().any(|o| o.same_place(l)));
    added.and_then(|l| named(&l.url, l.line, false))
}

/// Whether the template has the note too (old templates keep plain bullets below an item).
fn ours_has(markdown: &str, words: &[String]) -> bool {
    markdown.lines().skip(1).any(|l| {
        let line = text::tokens(l);
        words.iter().all(|w| line.contains(w))
    })
}

fn shown(entry: &Entry) -> String {
    match &entry.under {
        Some(under) => format!("{under} {}", entry.text),
        None => entry.text.clone(),
    }
}

struct Topics {
    phrases: Vec<Phrase>,
    /// For an item without a rule: words that no other item has; two of them make a mention.
    rare: Vec<String>,
}

/// The phrases by which text talks about an item: its rule's, and those of the item it is nested in, since "not
/// applicable" to that one covers it.
fn topics(template: &Template, index: usize, rules: &Rules) -> Topics {
    let mut phrases = Vec::new();
    let mut at = Some(index);
    // Parents come earlier in the list, so this ends.
    while let Some(item) = at.and_then(|i| template.items.get(i)) {
        if let Some(rule) = item.rule.and_then(|r| rules.items.get(r)) {
            phrases.extend(Phrase::list(&rule.topics));
            phrases.extend(Phrase::list(&rule.anchors));
        }
        at = item.parent.filter(|p| at.is_some_and(|i| *p < i));
    }
    let mut frequency: BTreeMap<&str, usize> = BTreeMap::new();
    for item in &template.items {
        let distinct: std::collections::BTreeSet<&str> = item.words.iter().map(String::as_str).collect();
        for word in distinct {
            *frequency.entry(word).or_default() += 1;
        }
    }
    let rare = match template.items.get(index) {
        Some(item) if item.rule.is_none() => item
            .words
            .iter()
            .filter(|w| w.len() >= 5 && frequency.get(w.as_str()) == Some(&1))
            .cloned()
            .collect(),
        _ => Vec::new(),
    };
    Topics { phrases, rare }
}

/// Whether an entry talks about the topics: `(at its beginning, with a reason)`.
fn about(entry: &Entry, topics: &Topics, cues: &[Phrase]) -> Option<(bool, bool)> {
    let under = entry.under.as_deref().map(text::tokens).unwrap_or_default();
    let words = text::tokens(&entry.text);
    let rare = |list: &[String]| topics.rare.iter().filter(|r| list.contains(r)).count() >= 2;
    let talks = |list: &[String]| text::earliest(&topics.phrases, list).is_some() || rare(list);
    // A topic's own words give no reason.
    let reasons = |list: &[String]| text::earliest(cues, &text::without(&topics.phrases, list)).is_some();
    let under_reason = reasons(&under);
    if talks(&under) || talks(words.get(..LEAD).unwrap_or(&words)) {
        return Some((true, under_reason || reasons(&words)));
    }
    if !talks(&words) {
        return None;
    }
    // A mention in passing counts only in a sentence that gives a reason, or under a line that does.
    let sentence = |s: &str| {
        let words = text::tokens(s);
        talks(&words) && (under_reason || reasons(&words))
    };
    entry
        .text
        .split(['.', ';', '!', '?', '。', '；', '！', '？'])
        .any(sentence)
        .then_some((false, true))
}
