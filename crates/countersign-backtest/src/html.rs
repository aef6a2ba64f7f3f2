//! Results as one page that needs nothing else: styles, script and data are inside it, and nothing is loaded. All text of
//! others is escaped where it stands in the page, and only ever set as text by the script.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use countersign_core::text::printable;
use serde_json::{Value, json};

use crate::compare::Change;
use crate::record::{Is, PullResult, Standing};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Escapes for text and for attributes in double quotes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// JSON that may stand in a script element: nothing in it can end the element.
fn embedded(value: &Value) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Texts by number, each once.
#[derive(Default)]
struct Strings {
    known: HashMap<String, i64>,
    all: Vec<String>,
}

impl Strings {
    fn id(&mut self, text: &str) -> i64 {
        if let Some(id) = self.known.get(text) {
            return *id;
        }
        let id = i64::try_from(self.all.len()).unwrap_or(-1);
        self.known.insert(text.to_owned(), id);
        self.all.push(text.to_owned());
        id
    }

    fn maybe(&mut self, text: Option<&str>) -> i64 {
        text.map_or(-1, |text| self.id(text))
    }
}

fn letter(is: Is) -> char {
    match is {
        Is::Fail => 'F',
        Is::Question => 'Q',
        Is::Warn => 'W',
        Is::Pass => 'P',
        Is::NotApplicable => 'N',
        Is::Unavailable => 'U',
        Is::NotJudged => 'J',
    }
}

/// The sign in a cell.
fn sign(is: Is) -> &'static str {
    match is {
        Is::Fail => "✗",
        Is::Question => "?",
        Is::Warn => "!",
        Is::Pass => "✓",
        Is::NotApplicable => "–",
        Is::Unavailable => "○",
        Is::NotJudged => "·",
    }
}

fn style_of(standing: Standing) -> &'static str {
    match standing {
        Standing::Unjudged => "unjudged",
        other => other.word(),
    }
}

fn frame(title: &str, intro: &str, summary: &str, filters: &str, class: &str, table: &str, data: &Value) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header><h1>{title}</h1>{intro}</header>\n\
         <div class=\"summary\">{summary}</div>\n\
         <form id=\"filter\">{filters}<button type=\"reset\">Reset</button><output id=\"count\"></output></form>\n\
         <noscript>Filters and details need the script that is in this page; the rows do not.</noscript>\n\
         <table id=\"list\" class=\"{class}\">\n{table}</table>\n\
         <script type=\"application/json\" id=\"data\">{}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        embedded(data)
    )
}

fn select(name: &str, label: &str, options: &[(String, String)]) -> String {
    let mut out = format!(
        "<select name=\"{name}\" aria-label=\"{}\"><option value=\"\">{}</option>",
        escape(label),
        escape(label)
    );
    for (value, shown) in options {
        let _ = write!(out, "<option value=\"{}\">{}</option>", escape(value), escape(shown));
    }
    out.push_str("</select>");
    out
}

const SEARCH: &str =
    "<input type=\"search\" name=\"text\" placeholder=\"number, title, reason, remedy …\" aria-label=\"text\">";

fn merged_filter() -> String {
    select(
        "merged",
        "merged or not",
        &[("yes".into(), "merged".into()), ("no".into(), "not merged".into())],
    )
}

/// The columns: every check that any result has, in the order of the numbers.
fn columns(results: &[PullResult]) -> Vec<(u32, String, String)> {
    let mut found: BTreeMap<(u32, String), String> = BTreeMap::new();
    for row in results.iter().flat_map(|result| &result.rows) {
        found
            .entry((row.number, row.slug.clone()))
            .or_insert_with(|| row.name.clone());
    }
    found
        .into_iter()
        .map(|((number, slug), name)| (number, slug, name))
        .collect()
}

fn counts(results: &[PullResult], columns: &[(u32, String, String)]) -> String {
    let mut out = String::from("<table><thead><tr><th></th><th>check</th>");
    for is in Is::ALL {
        let _ = write!(out, "<th class=\"{}\">{} {}</th>", letter(is), sign(is), is.word());
    }
    out.push_str("</tr></thead><tbody>");
    for (column, (number, slug, name)) in columns.iter().enumerate() {
        let _ = write!(
            out,
            "<tr><td>{number}</td><th title=\"{}\">{}</th>",
            escape(name),
            escape(slug)
        );
        for is in Is::ALL {
            let count = results
                .iter()
                .flat_map(|result| &result.rows)
                .filter(|row| row.number == *number && row.slug == *slug && row.is == is)
                .count();
            if count == 0 {
                out.push_str("<td class=\"N\">·</td>");
            } else {
                let _ = write!(
                    out,
                    "<td class=\"{0}\"><button type=\"button\" data-check=\"{column}\" data-outcome=\"{0}\">{count}</button></td>",
                    letter(is)
                );
            }
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table><p>");
    for standing in Standing::ALL {
        let count = results.iter().filter(|result| result.standing == standing).count();
        if count > 0 {
            let _ = write!(
                out,
                "<button type=\"button\" class=\"{0}\" data-standing=\"{0}\">{count} {1}</button> &nbsp; ",
                style_of(standing),
                standing.word()
            );
        }
    }
    out.push_str("</p>");
    out
}

/// One page of all results: a row a pull request, newest first.
#[must_use]
pub fn page(results: &[PullResult], repository: &str, policy: &str) -> String {
    let columns = columns(results);
    let mut strings = Strings::default();
    let mut pulls = Vec::new();
    let mut table =
        String::from("<thead><tr><th>#</th><th>pull request</th><th>head of</th><th></th><th>comes to</th>");
    for (number, slug, name) in &columns {
        let _ = write!(
            table,
            "<th class=\"c\" title=\"{}\"><span>{number} {}</span></th>",
            escape(name),
            escape(slug)
        );
    }
    table.push_str("</tr></thead>\n<tbody>\n");
    for (at, result) in results.iter().rev().enumerate() {
        let cells: Vec<Option<Is>> = columns
            .iter()
            .map(|(number, slug, _)| {
                let row = result
                    .rows
                    .iter()
                    .find(|row| row.number == *number && row.slug == *slug);
                row.map(|row| row.is)
            })
            .collect();
        let letters: String = cells.iter().map(|cell| cell.map_or('.', letter)).collect();
        let merged = if result.merged { "yes" } else { "no" };
        let world = if result.world { "yes" } else { "no" };
        let style = style_of(result.standing);
        let _ = write!(
            table,
            "<tr class=\"p\" tabindex=\"0\" data-at=\"{at}\" data-letters=\"{letters}\" data-merged=\"{merged}\" data-world=\"{world}\" data-standing=\"{style}\">\
             <td class=\"n\"><a href=\"{}\" rel=\"noreferrer\">{}</a></td><td class=\"t\">{}</td><td class=\"d\">{}</td><td class=\"d\">{}</td><td class=\"{style}\">{}</td>",
            escape(&result.url),
            result.number,
            escape(&result.title),
            result.at.format("%Y-%m-%d"),
            if result.merged { "merged" } else { "" },
            result
                .decision
                .map_or(result.standing.word(), countersign_core::Decision::word),
        );
        for cell in cells {
            let _ = match cell {
                Some(is) => write!(table, "<td class=\"c {}\">{}</td>", letter(is), sign(is)),
                None => write!(table, "<td class=\"c\"></td>"),
            };
        }
        table.push_str("</tr>\n");
        pulls.push(pull_data(result, &mut strings));
    }
    table.push_str("</tbody>\n");
    let checks: Vec<(String, String)> = columns
        .iter()
        .enumerate()
        .map(|(at, (number, slug, _))| (at.to_string(), format!("{number} {slug}")))
        .collect();
    let outcomes: Vec<(String, String)> = Is::ALL
        .iter()
        .map(|is| (letter(*is).to_string(), is.word().to_owned()))
        .collect();
    let standings: Vec<(String, String)> = Standing::ALL
        .iter()
        .map(|standing| (style_of(*standing).to_owned(), standing.word().to_owned()))
        .collect();
    let mut filters = format!(
        "{SEARCH}{}{}{}{}",
        select("check", "any check", &checks),
        select("outcome", "any outcome", &outcomes),
        select("standing", "comes to anything", &standings),
        merged_filter()
    );
    let worlds = results.iter().filter(|result| result.world).count();
    if worlds > 0 {
        filters.push_str(&select(
            "world",
            "with or without a world",
            &[
                ("yes".into(), "with a world".into()),
                ("no".into(), "clone alone".into()),
            ],
        ));
    }
    let intro = format!(
        "<p>{} pull requests judged by {}, each with the rules of the target branch on its head's day. A row opens with a click. \
         Where no world tells more, runs, comments and sign-offs are not known, and a row that needs them says so.</p>",
        results.len(),
        escape(policy)
    );
    frame(
        &format!("Backtest of {repository}"),
        &intro,
        &counts(results, &columns),
        &filters,
        "pulls",
        &table,
        &json!({ "strings": strings.all, "pulls": pulls }),
    )
}

fn pull_data(result: &PullResult, strings: &mut Strings) -> Value {
    let site = result.url.split("/pull/").next().unwrap_or_default();
    let mut links = vec![
        json!(["pull request", result.url]),
        json!(["files", format!("{}/files", result.url)]),
        json!(["head", format!("{site}/tree/{}", result.head)]),
    ];
    if let (Some(base), Some(trusted)) = (&result.base, &result.trusted) {
        links.push(json!([
            "what changed",
            format!("{site}/compare/{base}...{}", result.head)
        ]));
        links.push(json!(["trusted", format!("{site}/tree/{trusted}")]));
    }
    let rows: Vec<Value> = result
        .rows
        .iter()
        .map(|row| {
            let findings: Vec<Value> = row
                .findings
                .iter()
                .map(|finding| {
                    json!({
                        "code": finding.code,
                        "message": strings.id(&finding.message),
                        "remedy": strings.id(&finding.remedy),
                        "paste": strings.maybe(finding.paste.as_deref()),
                        "place": strings.maybe(finding.place.as_ref().map(|place| place.name.as_str())),
                        "url": strings.maybe(finding.place.as_ref().map(|place| place.url.as_str())),
                    })
                })
                .collect();
            json!({
                "number": row.number,
                "slug": row.slug,
                "level": row.level,
                "is": row.is,
                "letter": letter(row.is).to_string(),
                "why": strings.id(&row.why),
                "findings": findings,
                "notes": row.notes.iter().map(|note| strings.id(note)).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "links": links,
        "policy": strings.id(&result.policy),
        "problem": strings.maybe(result.problem.as_deref()),
        "rows": rows,
    })
}

/// One page of what differs between two policies: a row a change, newest pull request first.
#[must_use]
pub fn comparison_page(changes: &[Change], repository: &str, before: &str, after: &str) -> String {
    let mut counts: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for change in changes {
        *counts.entry((&change.slug, change.step())).or_default() += 1;
    }
    let mut summary = String::from("<table><thead><tr><th>check</th><th>change</th><th></th></tr></thead><tbody>");
    for ((slug, step), count) in &counts {
        let _ = write!(
            summary,
            "<tr><th>{0}</th><th>{1}</th><td><button type=\"button\" data-check=\"{0}\" data-step=\"{1}\">{count}</button></td></tr>",
            escape(slug),
            escape(step)
        );
    }
    summary.push_str("</tbody></table>");
    let mut table = String::from(
        "<thead><tr><th>#</th><th>pull request</th><th></th><th>check</th><th>change</th><th>cause and remedy</th></tr></thead>\n<tbody>\n",
    );
    let mut newest: Vec<&Change> = changes.iter().collect();
    newest.sort_by_key(|change| std::cmp::Reverse(change.number));
    for (at, change) in newest.into_iter().enumerate() {
        let step = change.step();
        let style = change.to.or(change.from).map_or('N', letter);
        let _ = write!(
            table,
            "<tr data-at=\"{at}\" data-merged=\"{}\" data-check=\"{}\" data-step=\"{}\">\
             <td class=\"n\"><a href=\"{}\" rel=\"noreferrer\">{}</a></td><td class=\"t\">{}</td><td class=\"d\">{}</td><td>{}</td><td class=\"{style}\">{}</td><td class=\"why\">{}",
            if change.merged { "yes" } else { "no" },
            escape(&change.slug),
            escape(&step),
            escape(&change.url),
            change.number,
            escape(&change.title),
            if change.merged { "merged" } else { "" },
            escape(&change.slug),
            escape(&step),
            escape(&change.cause),
        );
        if let Some(place) = &change.place {
            let _ = write!(
                table,
                "<div><a href=\"{}\" rel=\"noreferrer\">{}</a></div>",
                escape(&place.url),
                escape(&place.name)
            );
        }
        if let Some(remedy) = &change.remedy {
            let _ = write!(table, "<div class=\"do\">→ {}</div>", escape(remedy));
        }
        if let Some(before) = change.before.as_ref().filter(|before| **before != change.cause) {
            let _ = write!(table, "<div class=\"was\">before: {}</div>", escape(before));
        }
        table.push_str("</td></tr>\n");
    }
    table.push_str("</tbody>\n");
    let checks: std::collections::BTreeSet<&str> = changes.iter().map(|change| change.slug.as_str()).collect();
    let checks: Vec<(String, String)> = checks
        .into_iter()
        .map(|slug| (slug.to_owned(), slug.to_owned()))
        .collect();
    let steps: std::collections::BTreeSet<String> = counts.keys().map(|(_, step)| step.clone()).collect();
    let steps: Vec<(String, String)> = steps.into_iter().map(|step| (step.clone(), step)).collect();
    let pulls: std::collections::BTreeSet<u64> = changes.iter().map(|change| change.number).collect();
    let intro = format!(
        "<p>{} → {}: {} changes in {} pull requests. A check that only one of them has is listed where it asks something of somebody.</p>",
        escape(before),
        escape(after),
        changes.len(),
        pulls.len()
    );
    let filters = format!(
        "{SEARCH}{}{}{}",
        select("check", "any check", &checks),
        select("step", "any change", &steps),
        merged_filter()
    );
    frame(
        &format!("What another policy changes in {repository}"),
        &intro,
        &summary,
        &filters,
        "changes",
        &table,
        &json!({ "strings": [] }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_title_can_act_in_the_page() {
        assert_eq!(
            escape("<img src=x onerror='a'> & \"b\""),
            "&lt;img src=x onerror=&#39;a&#39;&gt; &amp; &quot;b&quot;"
        );
        let data = embedded(&json!({ "a": "</script><script>alert(1)</script>\u{2028}<!--" }));
        assert!(!data.contains(['<', '>', '&', '\u{2028}']), "{data}");
        assert_eq!(
            serde_json::from_str::<Value>(&data).unwrap(),
            json!({ "a": "</script><script>alert(1)</script>\u{2028}<!--" })
        );
    }
}
