//! Flags and model identifiers named anywhere in a text: the weakest kind of documentation, but the only one that
//! prose and partial diffs offer.

use serde::Serialize;

use super::Page;
use crate::value::Source;

/// Most values kept for one flag.
const MAX_VALUES: usize = 40;
/// Most model identifiers kept.
const MAX_MODELS: usize = 1_000;

/// A flag named in a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mention {
    /// The word that follows it, if it looks like a value.
    pub value: Option<String>,
    /// Where.
    pub source: Source,
}

/// Collects from a whole text.
pub(super) fn scan(path: &str, text: &str, first_line: u32, page: &mut Page) {
    for (i, line) in text.lines().enumerate() {
        let source = Source::new(path, first_line.saturating_add(i as u32));
        flags(line, &source, page);
        models(line, &source, page);
    }
}

fn flags(line: &str, source: &Source, page: &mut Page) {
    let mut from = 0;
    while let Some(at) = line[from..].find("--").map(|n| n + from) {
        let after = &line[at + 2..];
        let name_len = after
            .find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)))
            .unwrap_or(after.len());
        let name = after[..name_len].trim_end_matches(['.', '-']);
        from = at + 2 + name_len;
        let boundary = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '-');
        if name.len() < 2 || !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !boundary {
            continue;
        }
        let key = match name.split_once('.') {
            Some((head, tail)) => format!("{}.{tail}", head.replace('_', "-").to_lowercase()),
            None => name.replace('_', "-").to_lowercase(),
        };
        let value = value_of(&line[from..]);
        let list = page.mentions.entry(key).or_default();
        if list.len() < MAX_VALUES && !list.iter().any(|m| m.value == value) {
            list.push(Mention {
                value,
                source: source.clone(),
            });
        }
    }
}

/// The word after a flag, if it can be its value.
fn value_of(rest: &str) -> Option<String> {
    let rest = match rest.strip_prefix('=') {
        Some(r) => r,
        None => rest.strip_prefix(' ')?.trim_start(),
    };
    let rest = rest.trim_start_matches(['"', '\'']);
    let end = rest
        .find(|c: char| c.is_whitespace() || "\"'`,;)]}|\\<>$".contains(c))
        .unwrap_or(rest.len());
    let word = rest[..end].trim_end_matches(['.', ':']);
    let plausible = !word.is_empty()
        && word.len() <= 120
        && !word.starts_with('-')
        && word.starts_with(|c: char| c.is_ascii_alphanumeric());
    plausible.then(|| word.to_owned())
}

fn models(line: &str, source: &Source, page: &mut Page) {
    if page.models.len() >= MAX_MODELS {
        return;
    }
    let ident = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    for run in line.split(|c: char| !ident(c)) {
        // Addresses end in the identifier: `huggingface.co/owner/name`.
        let run = run
            .rsplit("huggingface.co/")
            .next()
            .unwrap_or(run)
            .trim_matches(['/', '.']);
        if looks_like_model(run) && !page.models.contains_key(run) {
            page.models.insert(run.to_owned(), source.clone());
        }
    }
}

/// `owner/name` with a digit in the name, and not a path of files.
pub(crate) fn looks_like_model(text: &str) -> bool {
    const ENDINGS: &[&str] = &[
        ".py", ".md", ".mdx", ".js", ".jsx", ".json", ".jsonl", ".yaml", ".yml", ".sh", ".png", ".jpg", ".svg", ".txt",
        ".whl", ".html", ".log", ".git",
    ];
    let Some((owner, name)) = text.split_once('/') else {
        return false;
    };
    text.len() <= 120
        && owner.len() >= 2
        && !owner.contains('.')
        && !name.contains('/')
        && name.len() >= 3
        && owner.chars().any(|c| c.is_ascii_alphabetic())
        && name.chars().any(|c| c.is_ascii_alphabetic())
        && name.chars().any(|c| c.is_ascii_digit())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
        && name.contains(['-', '.', '_'])
        && !ENDINGS.iter().any(|e| name.to_lowercase().ends_with(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(text: &str) -> Page {
        let mut page = Page::default();
        scan("p", text, 5, &mut page);
        page
    }

    #[test]
    fn flags_with_values_from_prose_and_strings() {
        let page = scanned(
            "Use `--kv-cache-dtype fp8_e4m3` or `--kv_cache_dtype=fp8`.\ncmd += ' --moe-runner-backend flashinfer_trtllm';\n--enable-x, and a--b, ----, --9x\n| --tp 8 | --tp 8 |",
        );
        let values = |name: &str| {
            page.mentions[name]
                .iter()
                .map(|m| m.value.as_deref())
                .collect::<Vec<_>>()
        };
        assert_eq!(values("kv-cache-dtype"), [Some("fp8_e4m3"), Some("fp8")]);
        assert_eq!(values("moe-runner-backend"), [Some("flashinfer_trtllm")]);
        assert_eq!(values("enable-x"), [None]);
        assert_eq!(values("tp"), [Some("8")]);
        assert_eq!(page.mentions["moe-runner-backend"][0].source.line, 6);
        assert_eq!(page.mentions.len(), 4);
    }

    #[test]
    fn model_identifiers() {
        let page = scanned(
            "[x](https://huggingface.co/Org/Model-397B) 'other/Name-2-FP8', a/b.py docs/v2/x lmsysorg/sglang src/x1.jsx org/name",
        );
        assert_eq!(
            page.models.keys().map(String::as_str).collect::<Vec<_>>(),
            ["Org/Model-397B", "other/Name-2-FP8"]
        );
    }
}
