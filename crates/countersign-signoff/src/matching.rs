//! Compares a sign-off with a template: which items answer which, what is missing, what is not ticked.
//!
//! Items are compared by their words with addresses taken out (domain guide, section 16). A word weighs the more the
//! fewer items of the template have it. The assignment is one to one, best pair first, so that of two similar items
//! each finds its own copy.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::explain::{Explanation, explain};
use crate::rules::Rules;
use crate::signoff::SignOff;
use crate::template::Template;
use crate::text::{self, Phrase};

/// How a sign-off's item answers a template's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The same words.
    Same,
    /// The same words, and something behind them.
    Appended,
    /// Shortened or reworded.
    Similar {
        /// How much of the template's item it has, by weight, in thousandths.
        covered: u16,
    },
}

/// A template item that has an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MatchedItem {
    /// Index in [`Template::items`].
    pub template: usize,
    /// Index in [`SignOff::items`].
    pub signoff: usize,
    /// Whether it is ticked.
    pub ticked: bool,
    /// How it answers.
    pub how: How,
}

/// A template item that the sign-off does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingItem {
    /// Index in [`Template::items`].
    pub template: usize,
    /// The id of its rule.
    pub id: Option<String>,
    /// A short name.
    pub title: String,
    /// Its lines, ready to paste.
    pub markdown: String,
    /// It may stay open, but it should be there.
    pub conditional: bool,
    /// What the sign-off says about it elsewhere.
    pub explanation: Explanation,
}

/// A template item that the sign-off has, without a tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UntickedItem {
    /// Index in [`Template::items`].
    pub template: usize,
    /// Index in [`SignOff::items`].
    pub signoff: usize,
    /// It may stay open.
    pub conditional: bool,
    /// What the sign-off says about it.
    pub explanation: Explanation,
}

/// A sign-off against a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TemplateMatch {
    /// Template items with an answer, in the template's order.
    pub matched: Vec<MatchedItem>,
    /// Template items without one, in the template's order.
    pub missing: Vec<MissingItem>,
    /// Answers without a tick, in the template's order.
    pub unticked: Vec<UntickedItem>,
    /// Indices of sign-off items that answer nothing.
    pub extra: Vec<usize>,
}

impl TemplateMatch {
    /// Whether every item is there, and ticked where it may not stay open.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.unticked.iter().all(|u| u.conditional)
    }

    /// The missing items, ready to paste; empty where nothing is missing.
    pub fn paste(&self) -> String {
        self.missing
            .iter()
            .map(|m| m.markdown.as_str())
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// How sure a pair must be where no anchor helps: this much of the template's item must be there.
const COVERED: f64 = 0.45;
/// And this much where an anchor helps.
const COVERED_WITH_ANCHOR: f64 = 0.05;
/// A pair without an anchor must share a word that at most this many template items have.
const RARE: usize = 2;

struct Candidate {
    score: f64,
    template: usize,
    signoff: usize,
    open: bool,
    how: How,
}

impl Template {
    /// Compares a sign-off with this template.
    pub fn compare(&self, signoff: &SignOff, rules: &Rules) -> TemplateMatch {
        let words: Vec<Vec<String>> = signoff.items.iter().map(|i| text::tokens(&i.text)).collect();
        let mut candidates = self.candidates(signoff, &words, rules);
        // Where the same item is there twice, once open, it is open.
        candidates.sort_by(|a, b| {
            let by_score = b.score.total_cmp(&a.score);
            by_score
                .then(b.open.cmp(&a.open))
                .then((a.template, a.signoff).cmp(&(b.template, b.signoff)))
        });
        let mut of_template: Vec<Option<(usize, How)>> = vec![None; self.items.len()];
        let mut taken = vec![false; signoff.items.len()];
        for c in candidates {
            if of_template[c.template].is_none() && !taken[c.signoff] {
                of_template[c.template] = Some((c.signoff, c.how));
                taken[c.signoff] = true;
            }
        }
        let mut out = TemplateMatch {
            matched: Vec::new(),
            missing: Vec::new(),
            unticked: Vec::new(),
            extra: taken.iter().enumerate().filter(|(_, t)| !**t).map(|(i, _)| i).collect(),
        };
        for (t, item) in self.items.iter().enumerate() {
            let Some((s, how)) = of_template[t] else {
                out.missing.push(MissingItem {
                    template: t,
                    id: item.id.clone(),
                    title: item.title.clone(),
                    markdown: item.markdown.clone(),
                    conditional: item.conditional,
                    explanation: explain(self, t, signoff, None, rules),
                });
                continue;
            };
            let ticked = signoff.items[s].is_ticked();
            out.matched.push(MatchedItem {
                template: t,
                signoff: s,
                ticked,
                how,
            });
            if !ticked {
                let explanation = explain(self, t, signoff, Some(s), rules);
                out.unticked.push(UntickedItem {
                    template: t,
                    signoff: s,
                    conditional: item.conditional,
                    explanation,
                });
            }
        }
        out
    }

    fn candidates(&self, signoff: &SignOff, words: &[Vec<String>], rules: &Rules) -> Vec<Candidate> {
        let sets: Vec<BTreeSet<&str>> = self
            .items
            .iter()
            .map(|i| i.words.iter().map(String::as_str).collect())
            .collect();
        let mut frequency: BTreeMap<&str, usize> = BTreeMap::new();
        for word in sets.iter().flatten() {
            *frequency.entry(word).or_default() += 1;
        }
        let count = self.items.len() as f64;
        let weight = |word: &str| ((count + 1.0) / frequency.get(word).map_or(1.0, |f| *f as f64)).ln();
        let total = |set: &BTreeSet<&str>| set.iter().map(|w| weight(w)).sum::<f64>();
        let totals: Vec<f64> = sets.iter().map(total).collect();
        let guards: Vec<(Vec<Phrase>, Vec<Phrase>)> = self
            .items
            .iter()
            .map(|i| i.rule.and_then(|r| rules.items.get(r)))
            .map(|r| r.map_or_else(Default::default, |r| (Phrase::list(&r.anchors), Phrase::list(&r.must))))
            .collect();

        let mut out = Vec::new();
        for (s, list) in words.iter().enumerate() {
            // Words that no template item has were added by the reviewer and say nothing about likeness.
            let known: BTreeSet<&str> = list
                .iter()
                .map(String::as_str)
                .filter(|w| frequency.contains_key(w))
                .collect();
            let mine = total(&known);
            let open = !signoff.items[s].is_ticked();
            for (t, item) in self.items.iter().enumerate() {
                let (anchors, must) = &guards[t];
                if !must.is_empty() && text::earliest(must, list).is_none() {
                    continue;
                }
                let anchored = text::earliest(anchors, list).is_some();
                if list == &item.words && !list.is_empty() {
                    out.push(Candidate {
                        score: 9.0,
                        template: t,
                        signoff: s,
                        open,
                        how: How::Same,
                    });
                    continue;
                }
                if item.words.len() >= 3 && list.starts_with(&item.words) {
                    out.push(Candidate {
                        score: 6.0,
                        template: t,
                        signoff: s,
                        open,
                        how: How::Appended,
                    });
                    continue;
                }
                let common: BTreeSet<&str> = known.intersection(&sets[t]).copied().collect();
                let shared = total(&common);
                let covered = if totals[t] > 0.0 { shared / totals[t] } else { 0.0 };
                let rare = common.iter().any(|w| frequency.get(w).is_some_and(|f| *f <= RARE));
                // Cut short: the template's own beginning, and no more.
                let cut = list.len() >= 4 && rare && item.words.starts_with(list);
                let enough = cut
                    || if anchored {
                        covered >= COVERED_WITH_ANCHOR
                    } else {
                        covered >= COVERED && rare
                    };
                if !enough {
                    continue;
                }
                let overlap = if mine > 0.0 { shared / mine.min(totals[t]) } else { 0.0 };
                let dice = if mine + totals[t] > 0.0 {
                    2.0 * shared / (mine + totals[t])
                } else {
                    0.0
                };
                let score = 0.5 * overlap + dice + if anchored { 0.5 } else { 0.0 };
                let how = How::Similar {
                    covered: (covered.clamp(0.0, 1.0) * 1000.0) as u16,
                };
                out.push(Candidate {
                    score,
                    template: t,
                    signoff: s,
                    open,
                    how,
                });
            }
        }
        out
    }
}
