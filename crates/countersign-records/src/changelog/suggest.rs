//! The block to append instead, derived from what the pull request meant to add.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::strict::{FIRST_KEY, History, LINK_KEY, item_starts};
use super::version::{self, Version};
use super::{ChangelogRules, Item, Links, MAX_BYTES};

/// A replacement that the merge-time rules accept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    /// Text to append to the target branch's file, byte for byte; it begins with the blank line where one is needed.
    pub append: String,
    /// How many items it has.
    pub items: usize,
    /// Whether the head must first be reset to the target branch's file; else only its end is wrong.
    pub restore_history: bool,
}

/// Derives it, and offers it only if the rules accept the result. `read` is the head as it was judged.
pub(super) fn suggest(
    history: &History,
    head: &[u8],
    read: Version,
    links: Links,
    rules: &ChangelogRules,
) -> Option<Suggestion> {
    let base = history.bytes();
    if head.len() > MAX_BYTES {
        return None;
    }
    let text = clean(head)?;
    let placed = read
        .in_pieces()
        .filter(|_| text.as_bytes() == head)
        .or_else(|| version::in_pieces(&text, history, rules))
        .or_else(|| version::whole(&text, rules))?;
    // Items of the head that the base does not have, each base item counted once, in order.
    let base_items = &history.version().items;
    let common = base_items
        .iter()
        .zip(&placed)
        .take_while(|(was, is)| was.is(is))
        .count();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for item in &base_items[common..] {
        *known.entry(item.signature()).or_default() += 1;
    }
    let mut added = Vec::new();
    for item in &placed[common..] {
        match known.get_mut(item.signature()) {
            Some(count) if *count > 0 => *count -= 1,
            _ => added.push(item),
        }
    }
    let mut items = Vec::new();
    for item in added {
        let item = item.item()?;
        let link = match links {
            Links::PullRequest(number) => rules.link(number),
            Links::DefaultBranch if rules.is_canonical(&item.pr_link) => item.pr_link.clone(),
            Links::DefaultBranch => return None,
        };
        items.push((item, link));
    }
    if items.is_empty() {
        return None;
    }
    // The author's own lines are kept where the rules accept them, comments and quoting included.
    let starts = item_starts(&text);
    let own: Option<Vec<String>> = items
        .iter()
        .map(|(item, link)| own_block(&text, &starts, item, link))
        .collect();
    let rendered = || items.iter().map(|(item, link)| render(item, link)).collect::<Vec<_>>();
    own.into_iter()
        .chain(std::iter::once_with(rendered))
        .find_map(|blocks| {
            let separator = if base.ends_with(b"\n\n") { "" } else { "\n" };
            let append = format!("{separator}{}", blocks.join("\n"));
            let result = [base, append.as_bytes()].concat();
            let accepted = history.judge(&result, links, rules).0.violations.is_empty();
            accepted.then(|| Suggestion {
                append,
                items: items.len(),
                restore_history: !head.starts_with(base),
            })
        })
}

/// The head as text with the mistakes mended that hide its items: line ends, tabs, NUL, the final newline.
fn clean(head: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(head).ok()?;
    let mut text = if text.contains(['\r', '\t', '\0']) {
        text.replace("\r\n", "\n")
            .replace('\r', "\n")
            .replace('\t', "  ")
            .replace('\0', "")
    } else {
        text.to_owned()
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Some(text)
}

/// The item's own lines with the link replaced, if they begin as they must and have one link line.
fn own_block(text: &str, starts: &[(usize, usize)], item: &Item, link: &str) -> Option<String> {
    let index = starts.binary_search_by_key(&item.line, |(_, line)| *line).ok()?;
    let end = starts.get(index + 1).map_or(text.len(), |(offset, _)| *offset);
    let mut lines: Vec<&str> = text.get(starts[index].0..end)?.lines().collect();
    while lines.last().is_some_and(|l| l.trim().is_empty()) {
        lines.pop();
    }
    let mut replaced = 0;
    let mut out = String::new();
    for line in lines {
        if line.starts_with(LINK_KEY) {
            replaced += 1;
            let _ = write!(out, "{LINK_KEY} {link}");
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    (replaced == 1 && out.starts_with(FIRST_KEY)).then_some(out)
}

/// The item written anew.
fn render(item: &Item, link: &str) -> String {
    let plain = |text: &str| {
        let word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        text.bytes().all(word) && text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
    };
    // A JSON string is a double-quoted YAML scalar.
    let quote = |text: &str| serde_json::Value::from(text).to_string();
    let mut out = format!("{FIRST_KEY}\n");
    for key in &item.config_keys {
        let _ = writeln!(out, "    - {}", if plain(key) { key.clone() } else { quote(key) });
    }
    out.push_str("  description:\n");
    for text in &item.description {
        let _ = writeln!(out, "    - {}", quote(text));
    }
    for (name, flag) in [
        ("evals-only", item.evals_only),
        ("all-evals", item.all_evals),
        ("append-only", item.append_only),
    ] {
        if flag {
            let _ = writeln!(out, "  {name}: true");
        }
    }
    if let Some(least) = item.eval_min_prefill_ep {
        let _ = writeln!(out, "  eval-min-prefill-ep: {least}");
    }
    if let Some(list) = &item.scenario_type {
        out.push_str("  scenario-type:\n");
        for value in list {
            let _ = writeln!(out, "    - {value}");
        }
    }
    let _ = writeln!(out, "{LINK_KEY} {link}");
    out
}
