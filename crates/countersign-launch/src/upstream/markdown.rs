//! Markdown and MDX: fenced commands with the headings, tabs and sentences around them.
//!
//! A scanner of lines, not a Markdown parser: pages indent fences inside components, where a parser sees plain text
//! (crate survey, section 8), and one unclosed brace must not hide the rest of a page.

use super::{Context, Page, PageRules, read_block};

/// Words after a fence that mean another language than the shell's.
const OTHER_LANGUAGES: &[&str] = &[
    "python",
    "py",
    "json",
    "jsonc",
    "yaml",
    "yml",
    "toml",
    "js",
    "jsx",
    "ts",
    "javascript",
    "typescript",
    "cpp",
    "c",
    "rust",
    "go",
    "java",
    "html",
    "xml",
    "css",
    "diff",
    "dockerfile",
    "mermaid",
    "sql",
    "ini",
];
/// Longest sentence kept as context, in characters.
const MAX_PROSE: usize = 300;

/// Reads a text whose first line is `first_line` of `path`.
pub(super) fn read(path: &str, text: &str, first_line: u32, rules: &PageRules, page: &mut Page) {
    let mut scanner = Scanner {
        path,
        rules,
        headings: Vec::new(),
        tabs: Vec::new(),
        prose: String::new(),
    };
    let mut lines = text.lines().enumerate().peekable();
    while let Some((i, raw)) = lines.next() {
        let line = raw.trim_start_matches(['>', ' ', '\t']);
        if let Some((mark, info)) = fence(line) {
            let mut body = String::new();
            let start = first_line.saturating_add(i as u32).saturating_add(1);
            for (_, raw) in lines.by_ref() {
                if closes(raw.trim_start_matches(['>', ' ', '\t']), mark) {
                    break;
                }
                body.push_str(raw.strip_prefix("> ").unwrap_or(raw));
                body.push('\n');
            }
            scanner.block(&info, &body, start, page);
            continue;
        }
        scanner.line(line, page);
    }
}

struct Scanner<'a> {
    path: &'a str,
    rules: &'a PageRules,
    /// Level and text.
    headings: Vec<(usize, String)>,
    tabs: Vec<String>,
    prose: String,
}

impl Scanner<'_> {
    fn block(&mut self, info: &str, body: &str, first_line: u32, page: &mut Page) {
        let language = info
            .split([' ', '{', '}', ','])
            .find(|w| !w.is_empty())
            .unwrap_or("")
            .to_lowercase();
        if OTHER_LANGUAGES.contains(&language.as_str()) {
            return;
        }
        // Prompts of console transcripts.
        let body: String = body
            .lines()
            .map(|l| {
                let t = l.trim_start();
                let stripped = t.strip_prefix("$ ").map_or_else(|| l.to_owned(), str::to_owned);
                stripped + "\n"
            })
            .collect();
        let mut around = vec![self.prose.clone()];
        around.extend(self.tabs.iter().rev().cloned());
        around.extend(self.headings.iter().rev().map(|(_, h)| h.clone()));
        let headings = self
            .headings
            .iter()
            .map(|(_, h)| h.clone())
            .chain(self.tabs.iter().cloned())
            .collect();
        read_block(
            self.path,
            &body,
            first_line,
            &Context { headings, around },
            self.rules,
            page,
        );
    }

    fn line(&mut self, line: &str, page: &mut Page) {
        let level = line.bytes().take_while(|b| *b == b'#').count();
        if (1..=6).contains(&level) && line[level..].starts_with(' ') {
            self.headings.retain(|(l, _)| *l < level);
            self.headings.push((level, cut(line[level..].trim())));
            self.prose.clear();
            return;
        }
        if line.starts_with("</Tab>") || line.starts_with("</Accordion>") || line.starts_with("</TabItem>") {
            self.tabs.pop();
        } else if let Some(title) = tab_title(line) {
            if !line.contains("/>") && self.tabs.len() < 20 {
                self.tabs.push(cut(&title));
            }
        } else if let Some(title) = line.strip_prefix("=== ") {
            // A tab of mkdocs lasts until the next one.
            self.tabs.clear();
            self.tabs.push(cut(title.trim_matches(['"', ' '])));
        } else if let Some(import) = line.strip_prefix("import ").and_then(|l| l.split(['"', '\'']).nth(1)) {
            if page.imports.len() < 100 {
                page.imports.push(import.to_owned());
            }
        } else if !line.is_empty() {
            self.prose = cut(line);
        }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_PROSE).collect()
}

/// The mark and the info string of an opening fence.
fn fence(line: &str) -> Option<((char, usize), String)> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let n = line.chars().take_while(|c| *c == mark).count();
    let info = &line[n..];
    (n >= 3 && !info.contains('`')).then(|| ((mark, n), info.trim().to_owned()))
}

fn closes(line: &str, (mark, n): (char, usize)) -> bool {
    let count = line.chars().take_while(|c| *c == mark).count();
    count >= n && line[count..].trim().is_empty()
}

/// The title of a tab or accordion component.
fn tab_title(line: &str) -> Option<String> {
    let tag = ["<Tab ", "<Accordion ", "<TabItem "]
        .iter()
        .find(|t| line.starts_with(**t))?;
    let rest = &line[tag.len()..];
    let at = rest
        .find("title=")
        .map(|n| n + 6)
        .or_else(|| rest.find("label=").map(|n| n + 6))?;
    rest[at..]
        .split(['"', '\'', '{', '}'])
        .find(|s| !s.trim().is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Fact;

    const PAGE: &str = "# Model\n\n## Run on H200\n\n<Tabs>\n  <Tab title=\"B200\">\n\n    ```bash Command\n    vllm serve org/M-1 \\\n      --tensor-parallel-size 8\n    ```\n\n  </Tab>\n  <Tab title=\"Docker\">\n  ~~~console\n  $ docker run x/vllm-openai:v1 org/M-2 -tp 4\n  ~~~\n  </Tab>\n</Tabs>\n\n```python\nvllm serve never\n```\n{ broken <Tab\n\nFor MI355X use:\n```\n# decode on MI300X\npython -m sglang.launch_server --model-path org/M-3 --tp 2\n";

    #[test]
    fn fences_in_components_and_broken_pages() {
        let mut rules = PageRules::default();
        for id in ["h200", "b200", "mi355x", "mi300x"] {
            rules.hardware.insert(id.into(), vec![]);
        }
        let mut page = Page::default();
        read("p.mdx", PAGE, 1, &rules, &mut page);
        let seen: Vec<_> = page
            .documented
            .iter()
            .map(|d| {
                (
                    d.launch.model.to_string(),
                    d.launch.parallel.tp.clone(),
                    d.hardware.join(","),
                    d.launch.source.line,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("org/M-1".to_owned(), Fact::Known(8), "b200".to_owned(), 9),
                ("org/M-2".to_owned(), Fact::Known(4), "h200".to_owned(), 16),
                ("org/M-3".to_owned(), Fact::Known(2), "mi300x".to_owned(), 29),
            ]
        );
        assert_eq!(page.documented[0].headings, ["Model", "Run on H200", "B200"]);
    }
}
