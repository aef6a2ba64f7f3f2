//! Master configs, runner facts and the changelog's added items: read, expanded, selected and compared.
//!
//! The input holds up to four files, separated by lines of `%%%`: two master configs, the runners, and the text that is
//! appended to the changelog.

use countersign_matrix::{
    Configs, EvalMode, Format, Layout, MapFiles, MatrixRules, Problem, Row, SelectOptions, added_items, curves, diff,
    diff_report, full_sweep, job_name, lane, problems_report, rows_report, select, selection_report,
};
use countersign_yaml::Limits;

/// The rules of the crate's own tests, and less room, so that no input takes long.
const RULES: &str = include_str!("../../../crates/countersign-matrix/testdata/rules.yaml");
const MOST_ROWS: usize = 400;

#[derive(serde::Deserialize)]
struct Policy {
    matrix: MatrixRules,
    layout: Layout,
}

pub(crate) fn run(data: &[u8]) {
    let Ok(Policy { mut matrix, layout }) = countersign_yaml::from_str::<Policy>(RULES, &Limits::default()) else {
        panic!("the rules are valid")
    };
    matrix.max_rows = MOST_ROWS;
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split("%%%\n");
    let mut files = MapFiles::new();
    for path in layout.masters.iter().chain([&layout.runners]) {
        files = files.with(path, parts.next().unwrap_or_default());
    }
    let configs = Configs::read(&files, &layout, &matrix);
    for mode in [
        EvalMode::Unmarked,
        EvalMode::Marked,
        EvalMode::EvalsOnly,
        EvalMode::AllEvals,
    ] {
        match full_sweep(&configs, &matrix, mode) {
            Ok(rows) => expanded(&rows, &matrix),
            Err(problems) => refused(&problems),
        }
    }
    let appended = parts.next().unwrap_or_default();
    let items = match added_items(&layout.changelog, "", appended) {
        Ok(items) => items,
        Err(problems) => return refused(&problems),
    };
    for base in [None, Some(&configs)] {
        match select(
            &layout.changelog,
            &items,
            &configs,
            base,
            &matrix,
            SelectOptions::default(),
        ) {
            Ok(selection) => {
                assert!(!selection.append_only, "nothing can be added to what is the same");
                let _ = selection_report(&selection, &matrix, Format::Text);
            }
            Err(problems) => refused(&problems),
        }
    }
}

fn expanded(rows: &[Row], rules: &MatrixRules) {
    let mut reversed = rows.to_vec();
    reversed.reverse();
    assert!(diff(rows, &reversed).is_empty(), "the order of rows counts");
    let all = diff(&[], rows);
    assert_eq!(
        (all.added.len(), all.removed.len(), all.changed.len()),
        (rows.len(), 0, 0)
    );
    let _ = diff_report(&all, rules, Format::Csv);
    let on_curves: usize = curves(rows).iter().map(|curve| curve.rows.len()).sum();
    assert_eq!(on_curves, rows.len(), "each row lies on one curve");
    for row in rows {
        assert_eq!(row.fingerprint().len(), 64);
        assert!(!job_name(row, rules).contains('\n'));
        let _ = lane(row, rules);
    }
    assert!(serde_json::from_str::<serde_json::Value>(&rows_report(rows, rules, Format::Json)).is_ok());
}

fn refused(problems: &[Problem]) {
    assert!(!problems.is_empty(), "a refusal without a reason");
    for problem in problems {
        assert!(!problem.message.is_empty() && !problem.remedy.is_empty(), "{problem:?}");
    }
    let _ = problems_report(problems, Format::Json);
}
