//! Recognition of sign-offs, checklist items, templates and commands in Markdown. Pure.
//!
//! What this crate reads was typed by people into comment boxes: [`recognise()`] decides whether a body is a
//! sign-off, [`Template`] reads the trusted checklist and compares a sign-off with it, and [`commands()`] finds the
//! whole-line commands. Every word that belongs to one repository (the phrase, headings, placeholders, hosts,
//! command names) comes in as [`Rules`] or [`CommandRules`].
//!
//! Nothing here does I/O, panics on input, or looks at more than [`MAX_BODY_CHARS`] characters.

pub mod commands;
pub mod explain;
mod inline;
pub mod lines;
pub mod links;
pub mod matching;
mod reader;
pub mod recognise;
pub mod rules;
pub mod signoff;
pub mod template;
pub mod text;

pub use commands::{Command, CommandKind, Commands, Miss, NearMiss, commands};
pub use explain::{Explanation, Place};
pub use links::{IgnoredLink, Link, LinkSource, RunLink, Target, WhyIgnored};
pub use matching::{How, MatchedItem, MissingItem, TemplateMatch, UntickedItem};
pub use recognise::{AuthorInfo, Recognition, Refusal, recognise};
pub use rules::{CommandRules, DashboardRule, ItemRule, LinkKindRule, LinkRules, ReuseRule, Rules, RulesProblem};
pub use signoff::{BeyondLink, BoxState, Detail, DetailHeading, Entry, Item, Note, Section, SignOff, Signature};
pub use template::{Template, TemplateError, TemplateItem};

/// The longest body that is read, in characters: GitHub's own limit for a comment or a review.
pub const MAX_BODY_CHARS: usize = 65_536;

/// The most checklist items that are kept of one body; further ones are dropped and [`SignOff::items_cut`] is set.
pub const MAX_ITEMS: usize = 400;

/// Runs everything in this crate over arbitrary bytes, as a body, as a template and as a list of commands.
///
/// An entry for fuzzers: it must return whatever `data` holds. It returns how many items and commands it saw, so
/// that the work is not optimised away.
pub fn exercise(data: &[u8], rules: &Rules, command_rules: &CommandRules) -> usize {
    let body = String::from_utf8_lossy(data);
    let author = AuthorInfo {
        login: "someone".into(),
        is_bot: false,
        is_self: false,
    };
    let found = commands(&body, command_rules);
    let mut seen = found.commands.len() + found.near_misses.len();
    let recognised = recognise(&body, &author, rules);
    if let Recognition::SignOff(s) = &recognised {
        seen += s.items.len() + s.digest_input().len();
    }
    if let Ok(template) = Template::parse(&body, rules) {
        seen += template.items.len();
        if let Recognition::SignOff(s) = &recognised {
            let found = template.compare(s, rules);
            seen += found.matched.len() + found.missing.len() + found.extra.len();
            seen += s.links_beyond_template(&template).len();
        }
    }
    seen
}
