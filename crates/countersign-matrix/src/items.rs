//! The changelog items that a change adds, as far as the selection of benchmarks needs them (domain guide 7.1). The
//! rules for the file itself are another crate's.

use std::sync::Arc;

use countersign_yaml::{Limits, Node, Span, Strict, parse};
use serde::Serialize;

use crate::entry::Problem;
use crate::expand::Scenarios;
use crate::linediff::line_diff;
use crate::rules::ScenarioType;

/// One added item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// Line of the item in the new file, from 1.
    pub line: u32,
    /// `config-keys`, as written.
    pub config_keys: Vec<String>,
    /// `description`.
    pub description: Vec<String>,
    /// `pr-link`.
    pub pr_link: String,
    /// `evals-only`.
    pub evals_only: bool,
    /// `all-evals`.
    pub all_evals: bool,
    /// `append-only`.
    pub append_only: bool,
    /// `eval-min-prefill-ep`.
    pub eval_min_prefill_ep: Option<i64>,
    /// `scenario-type`.
    pub scenario_type: Option<Vec<ScenarioType>>,
}

impl Item {
    /// The scenario types the item asks for.
    #[must_use]
    pub fn scenarios(&self) -> Scenarios {
        match &self.scenario_type {
            None => Scenarios::ALL,
            Some(types) => Scenarios {
                fixed: types.contains(&ScenarioType::Fixed),
                agentic: types.contains(&ScenarioType::Agentic),
            },
        }
    }
}

/// The items that the new text adds to the old one, read from the added lines only, as the repository's tool does.
///
/// # Errors
/// Deleted content, nothing added, or added lines that are not a list of valid items.
pub fn added_items(file: &str, old: &str, new: &str) -> Result<Vec<Item>, Vec<Problem>> {
    let file: Arc<str> = Arc::from(file);
    let at = |line: usize, message: String, remedy: &str| {
        vec![Problem {
            file: file.clone(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::from(line > 0),
            entry: None,
            path: String::new(),
            message,
            remedy: remedy.to_owned(),
        }]
    };
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let Some(diff) = line_diff(&old_lines, &new_lines) else {
        return Err(at(
            0,
            "most of the file is rewritten".to_owned(),
            "restore it and append the new items at its end",
        ));
    };
    for index in diff.deleted {
        let content = old_lines[index].trim();
        // A deleted line that begins with two dashes looks like a header of the diff and passes (domain guide 7.4).
        if !content.is_empty() && !old_lines[index].starts_with("--") {
            return Err(at(
                0,
                format!("line {} of the base is gone: `{}`", index + 1, clip(content)),
                "restore it; merge the base branch if the line was added there",
            ));
        }
    }
    let mut text = String::new();
    let mut line_numbers = Vec::new();
    for index in diff.added {
        // Likewise an added line that begins with two plus signs, and what follows a lone carriage return.
        let content = new_lines[index].split(['\r', '\n']).next().unwrap_or_default();
        if !content.starts_with("++") {
            text.push_str(content);
            text.push('\n');
            line_numbers.push(index + 1);
        }
    }
    text.pop();
    let line_of = |line: u32| line_numbers.get((line as usize).wrapping_sub(1)).copied().unwrap_or(0);
    if text.trim().is_empty() {
        return Err(at(
            0,
            "nothing is added".to_owned(),
            "append an item that names the entries to run",
        ));
    }
    let document =
        parse(&text, &Limits::default()).map_err(|error| at(line_of(error.line), error.message, &error.remedy))?;
    let mut strict = Strict::new();
    let nodes = match document.root.as_seq() {
        Some([]) => {
            return Err(at(
                0,
                "no item is added".to_owned(),
                "append an item that names the entries to run",
            ));
        }
        Some(nodes) => nodes,
        None if document.root.is_null() => {
            return Err(at(
                0,
                "only comments are added".to_owned(),
                "append an item that names the entries to run",
            ));
        }
        None => {
            let line = line_of(document.root.span.line);
            return Err(at(
                line,
                "the added lines are not a list of items".to_owned(),
                "begin each item with `- `",
            ));
        }
    };
    let mut items = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        strict.enter(index);
        items.extend(item(&mut strict, node).map(|item| Item {
            line: u32::try_from(line_of(node.span.line)).unwrap_or(u32::MAX),
            ..item
        }));
        strict.leave();
    }
    if strict.problems.is_empty() {
        return Ok(items);
    }
    Err(strict
        .problems
        .into_iter()
        .map(|problem| Problem {
            file: file.clone(),
            line: u32::try_from(line_of(problem.line)).unwrap_or(u32::MAX),
            column: problem.column,
            entry: None,
            path: problem.path,
            message: problem.message,
            remedy: problem.remedy,
        })
        .collect())
}

fn clip(text: &str) -> &str {
    text.char_indices().nth(80).map_or(text, |(end, _)| &text[..end])
}

const FIELDS: [&str; 8] = [
    "config-keys",
    "description",
    "pr-link",
    "evals-only",
    "all-evals",
    "append-only",
    "eval-min-prefill-ep",
    "scenario-type",
];

fn item(strict: &mut Strict, node: &Node) -> Option<Item> {
    let map = strict.expect_map(node, "", &FIELDS)?;
    let mut list = |field: &str| {
        let value = strict.required(map, node.span, "", field)?;
        let texts = strict.expect_str_list(value, field)?;
        if texts.is_empty() {
            strict.problem(value.span, field, format!("`{field}` is empty"), "write at least one");
            return None;
        }
        Some(texts.into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let config_keys = list("config-keys");
    let description = list("description");
    let pr_link = match strict.required(map, node.span, "", "pr-link") {
        Some(value) => strict.expect_str(value, "pr-link").map(str::to_owned),
        None => None,
    };
    let mut flag = |field: &str| match map.get(field) {
        Some(value) => strict.expect_bool(value, field),
        None => Some(false),
    };
    let (evals_only, all_evals, append_only) = (flag("evals-only"), flag("all-evals"), flag("append-only"));
    let eval_min_prefill_ep = match map.get("eval-min-prefill-ep") {
        Some(value) if !value.is_null() => {
            let number = strict.expect_int(value, "eval-min-prefill-ep")?;
            if number < 1 {
                strict.problem(
                    value.span,
                    "eval-min-prefill-ep",
                    "must be at least 1",
                    "correct the number",
                );
            }
            Some(number)
        }
        _ => None,
    };
    let scenario_type = match map.get("scenario-type") {
        Some(value) if !value.is_null() => Some(scenario_types(strict, value)?),
        _ => None,
    };
    let item = Item {
        line: node.span.line,
        config_keys: config_keys?,
        description: description?,
        pr_link: pr_link?,
        evals_only: evals_only?,
        all_evals: all_evals?,
        append_only: append_only?,
        eval_min_prefill_ep,
        scenario_type,
    };
    if item.append_only && (item.evals_only || item.all_evals || item.eval_min_prefill_ep.is_some()) {
        strict.problem(
            node.span,
            "append-only",
            "`append-only` cannot be combined with fields that select evaluations",
            "remove one of the two",
        );
    }
    Some(item)
}

fn scenario_types(strict: &mut Strict, node: &Node) -> Option<Vec<ScenarioType>> {
    let names = strict.expect_str_list(node, "scenario-type")?;
    let mut types = Vec::new();
    for name in &names {
        match [ScenarioType::Fixed, ScenarioType::Agentic]
            .into_iter()
            .find(|known| known.name() == *name)
        {
            Some(known) => types.push(known),
            None => strict.problem(
                node.span,
                "scenario-type",
                format!("`{}` is not a scenario type", clip(name)),
                format!(
                    "use `{}` or `{}`",
                    ScenarioType::Fixed.name(),
                    ScenarioType::Agentic.name()
                ),
            ),
        }
    }
    if names.is_empty() {
        strict.problem(
            node.span,
            "scenario-type",
            "the list is empty",
            "name a scenario type, or remove the field",
        );
    }
    Some(types)
}

/// Where a problem of an item is reported when only the item is known.
pub(crate) fn item_problem(
    file: &Arc<str>,
    item: &Item,
    path: &str,
    message: impl Into<String>,
    remedy: impl Into<String>,
) -> Problem {
    Problem {
        file: file.clone(),
        line: item.line,
        column: Span::default().column.max(1),
        entry: None,
        path: path.to_owned(),
        message: message.into(),
        remedy: remedy.into(),
    }
}
