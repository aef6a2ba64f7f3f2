//! Pull-request diffs: what their added side documents.
//!
//! A file that the diff adds is read like a page. Of a changed file only the added lines are known for certain, so it
//! is read with gaps: whole commands that stand in its hunks, and every flag and model named on an added line.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Page, PageRules, mention, read};

/// Most files read from one diff.
const MAX_FILES: usize = 300;
/// Highest line number that is believed.
const MAX_LINE: u32 = 50_000;

/// What a diff documents in one file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiffFile {
    /// Path on the new side.
    pub path: String,
    /// Whether the whole file is known, since the diff adds it.
    pub complete: bool,
    /// What it documents.
    pub page: Page,
}

/// Reads the added side of a unified diff. `path` names the file for a diff without headers, as GitHub's per-file
/// patches are.
pub fn read_diff(diff: &str, path: Option<&str>, rules: &PageRules) -> Vec<DiffFile> {
    let mut out = Vec::new();
    let mut current: Option<Side> = path.map(|p| Side::new(p, false));
    for line in diff.lines() {
        let in_hunk = current.as_ref().is_some_and(|s| s.left > 0 || s.right > 0);
        if !in_hunk {
            if line.starts_with("diff --git ") || line.starts_with("Index: ") {
                finish(&mut out, current.take(), rules);
                continue;
            }
            if let Some(old) = line.strip_prefix("--- ") {
                finish(&mut out, current.take(), rules);
                current = Some(Side::new("", old.trim() == "/dev/null"));
                continue;
            }
            if let Some(new) = line.strip_prefix("+++ ") {
                let name = new.split('\t').next().unwrap_or(new).trim();
                match current.as_mut() {
                    Some(side) => side.path = name.strip_prefix("b/").unwrap_or(name).to_owned(),
                    None => current = Some(Side::new(name.strip_prefix("b/").unwrap_or(name), false)),
                }
                continue;
            }
            if let (Some(side), Some((start, left, right))) = (current.as_mut(), hunk(line)) {
                side.at = start;
                side.left = left;
                side.right = right;
            }
            continue;
        }
        if let Some(side) = current.as_mut() {
            side.take(line);
        }
        if out.len() >= MAX_FILES {
            break;
        }
    }
    finish(&mut out, current, rules);
    out
}

/// The new side of one file.
struct Side {
    path: String,
    complete: bool,
    lines: Vec<String>,
    added: BTreeSet<u32>,
    at: u32,
    left: u32,
    right: u32,
}

impl Side {
    fn new(path: &str, complete: bool) -> Self {
        Side {
            path: path.to_owned(),
            complete,
            lines: Vec::new(),
            added: BTreeSet::new(),
            at: 0,
            left: 0,
            right: 0,
        }
    }

    fn take(&mut self, line: &str) {
        match line.as_bytes().first() {
            Some(b'+') => {
                self.put(&line[1..]);
                self.added.insert(self.at);
                self.at = self.at.saturating_add(1);
                self.right = self.right.saturating_sub(1);
            }
            Some(b'-') => self.left = self.left.saturating_sub(1),
            Some(b'\\') => {}
            _ => {
                self.put(line.get(1..).unwrap_or(""));
                self.at = self.at.saturating_add(1);
                self.left = self.left.saturating_sub(1);
                self.right = self.right.saturating_sub(1);
            }
        }
    }

    fn put(&mut self, text: &str) {
        if self.at == 0 || self.at > MAX_LINE {
            return;
        }
        let index = self.at as usize - 1;
        if self.lines.len() <= index {
            self.lines.resize(index + 1, String::new());
        }
        self.lines[index] = text.to_owned();
    }
}

/// `@@ -a,b +c,d @@`: first new line, and how many lines the hunk has on each side.
fn hunk(line: &str) -> Option<(u32, u32, u32)> {
    let rest = line.strip_prefix("@@ -")?;
    let (old, rest) = rest.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let pair = |text: &str| -> Option<(u32, u32)> {
        match text.split_once(',') {
            Some((a, b)) => Some((a.parse().ok()?, b.parse().ok()?)),
            None => Some((text.parse().ok()?, 1)),
        }
    };
    let ((_, left), (start, right)) = (pair(old)?, pair(new)?);
    Some((start, left, right))
}

fn finish(out: &mut Vec<DiffFile>, side: Option<Side>, rules: &PageRules) {
    let Some(side) = side else { return };
    if side.added.is_empty() || side.path.is_empty() || side.path == "/dev/null" {
        return;
    }
    let text = side.lines.join("\n");
    let mut page = if side.complete || !side.path.ends_with(".yaml") {
        read(&side.path, &text, rules)
    } else {
        Page::default()
    };
    if !side.complete {
        // A command counts if a line of it is new; names count only on new lines.
        page.documented.retain(|d| {
            side.added.contains(&d.launch.source.line)
                || d.launch
                    .flags
                    .iter()
                    .any(|(_, values)| values.iter().any(|v| side.added.contains(&v.source.line)))
        });
        page.mentions.clear();
        page.models.clear();
        for line in &side.added {
            if let Some(text) = side.lines.get(*line as usize - 1) {
                mention::scan(&side.path, text, *line, &mut page);
            }
        }
    }
    out.push(DiffFile {
        path: side.path,
        complete: side.complete,
        page,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/x.md b/x.md\n--- a/x.md\n+++ b/x.md\n@@ -1,4 +1,6 @@\n # T\n ```bash\n-vllm serve org/M-1\n+vllm serve org/M-2 \\\n+  --kv-cache-dtype fp8 \\\n+  --tensor-parallel-size 8\n ```\n@@ -20,2 +22,3 @@\n ```bash\n vllm serve org/Old-1\n+-- not a flag\n--- a line that was removed\ndiff --git a/n.md b/n.md\nnew file mode 100644\n--- /dev/null\n+++ b/n.md\n@@ -0,0 +1,3 @@\n+```\n+sglang serve --model-path org/New-3 --tp 4\n+```\n\\ No newline at end of file\n";

    #[test]
    fn added_sides() {
        let files = read_diff(DIFF, None, &PageRules::default());
        assert_eq!(
            files.iter().map(|f| (f.path.as_str(), f.complete)).collect::<Vec<_>>(),
            [("x.md", false), ("n.md", true)]
        );
        let models: Vec<String> = files
            .iter()
            .flat_map(|f| &f.page.documented)
            .map(|d| d.launch.model.to_string())
            .collect();
        assert_eq!(models, ["org/M-2", "org/New-3"]);
        assert_eq!(files[0].page.documented[0].launch.source.line, 3);
        assert_eq!(
            files[0].page.models.keys().collect::<Vec<_>>(),
            ["org/M-2"],
            "unchanged and removed lines do not count"
        );
        assert_eq!(files[0].page.mentions["kv-cache-dtype"][0].source.line, 4);
    }

    #[test]
    fn a_patch_without_headers_and_wild_numbers() {
        let files = read_diff(
            "@@ -0,0 +1 @@\n+vllm serve org/M-9",
            Some("run.sh"),
            &PageRules::default(),
        );
        assert_eq!(files[0].page.documented.len(), 1);
        assert!(
            read_diff(
                "@@ -1,4294967295 +4294967295,4294967295 @@\n+x\n+y",
                Some("a.md"),
                &PageRules::default()
            )[0]
            .page
            .documented
            .is_empty()
        );
        assert!(read_diff("@@ -x +y @@\n+x", Some("a.md"), &PageRules::default()).is_empty());
    }
}
