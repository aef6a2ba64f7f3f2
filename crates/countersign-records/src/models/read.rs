//! From blocks to claims: the support matrix, the scenario table, the engine mapping, and the dated notices.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{Block, Text, blocks};
use super::phrase::{Mark, Parsed, clauses, codes, has_any, parentheses, parse, split_top};
use super::{
    Arm, Bound, Claim, EngineRow, MAX_BYTES, ModelRow, ModelsError, ModelsRules, ModelsTable, Place, Precisions,
    Remark, Source,
};

/// Separators inside a cell of the support matrix.
const CELL: [&str; 5] = [",", ";", ". ", " — ", " and "];

/// Reads a models file.
///
/// # Errors
/// When the file is too large or has no support matrix. Anything smaller becomes [`ModelsTable::unread`].
pub fn read(text: &str, rules: &ModelsRules) -> Result<ModelsTable, ModelsError> {
    if text.len() > MAX_BYTES {
        return Err(ModelsError::TooLarge { bytes: text.len() });
    }
    let blocks = blocks(text);
    let mut reader = Reader::new(rules);
    // The matrix comes last in the file, but its prefixes tell which code spans of a notice are models.
    for block in &blocks {
        if let Block::Table { header, rows } = block {
            reader.matrix(header, rows);
        }
    }
    if reader.table.rows.is_empty() {
        return Err(ModelsError::NoSupportMatrix);
    }
    for block in &blocks {
        match block {
            Block::Heading { level, text } => reader.heading(*level, text),
            Block::Paragraph(text) => reader.paragraph(text),
            Block::Table { header, rows } => reader.table(header, rows),
        }
    }
    reader.close();
    reader.table.claims.sort_by_key(|c| c.source.line);
    Ok(reader.table)
}

/// A dated notice that is open: its tables and paragraphs belong together.
#[derive(Default)]
struct Group {
    level: u8,
    bound: Option<Bound>,
    /// Claims of each table, in order; the first element holds those of the paragraphs.
    tables: Vec<Vec<usize>>,
    direct: Vec<usize>,
    /// "Not yet enacted": the table by its ordinal, or the number of tables that precede the remark.
    marks: Vec<(Option<usize>, usize, Source)>,
}

struct Reader<'r> {
    rules: &'r ModelsRules,
    table: ModelsTable,
    group: Option<Group>,
}

fn has_column(header: &[Text], names: &[String]) -> Option<usize> {
    header
        .iter()
        .position(|cell| names.iter().any(|n| n.eq_ignore_ascii_case(cell.text.trim())))
}

fn cell(row: &[Text], index: Option<usize>) -> Option<&Text> {
    index.and_then(|i| row.get(i))
}

fn bounds(marks: &[Mark]) -> Vec<Bound> {
    marks
        .iter()
        .map(|m| match m {
            Mark::Last(day) => Bound::LastDay(*day),
            Mark::From(day) | Mark::Gone(day) => Bound::FirstDay(*day),
        })
        .collect()
}

/// What a claim is about, before it has a bound.
#[derive(Clone, Default)]
struct Subject {
    scenario: Option<String>,
    precisions: Option<Precisions>,
    arm: Option<Arm>,
}

impl<'r> Reader<'r> {
    fn new(rules: &'r ModelsRules) -> Self {
        let table = ModelsTable {
            rows: BTreeMap::new(),
            scenarios: BTreeMap::new(),
            claims: Vec::new(),
            still_runs: Vec::new(),
            arm_unpublished: Vec::new(),
            unread: Vec::new(),
            engines: BTreeMap::new(),
        };
        Reader {
            rules,
            table,
            group: None,
        }
    }

    fn claim(&mut self, prefix: Option<&str>, subject: Subject, bound: Bound, place: Place, source: Source) -> usize {
        self.table.claims.push(Claim {
            prefix: prefix.map(str::to_owned),
            scenario: subject.scenario,
            precisions: subject.precisions,
            arm: subject.arm,
            bound,
            day_zero: false,
            place,
            source,
            not_enacted: None,
        });
        self.table.claims.len() - 1
    }

    fn unread(&mut self, prefix: Option<&str>, scenario: Option<&str>, source: Source) {
        let remark = Remark {
            prefix: prefix.map(str::to_owned),
            scenario: scenario.map(str::to_owned),
            source,
        };
        self.table.unread.push(remark);
    }

    // ---- support matrix -------------------------------------------------------------------------------------------

    fn matrix(&mut self, header: &[Text], rows: &[Vec<Text>]) {
        let names = &self.rules.tables;
        let (Some(prefix), Some(active), Some(retired)) = (
            has_column(header, &names.prefix),
            has_column(header, &names.active),
            has_column(header, &names.retired),
        ) else {
            return;
        };
        let added = has_column(header, &names.date_added);
        for row in rows {
            let Some(prefix_cell) = row.get(prefix) else { continue };
            let source = Source {
                line: prefix_cell.line,
                text: prefix_cell.source().text,
            };
            let prefixes: BTreeSet<String> = codes(&prefix_cell.text).into_iter().map(str::to_owned).collect();
            if prefixes.is_empty() {
                self.unread(None, None, source);
                continue;
            }
            let date_added =
                cell(row, added).and_then(|c| super::phrase::dates(&c.text.to_ascii_lowercase()).into_iter().next());
            for name in prefixes {
                let entry = ModelRow {
                    class: row.first().map(|c| c.text.trim().to_owned()).unwrap_or_default(),
                    date_added: date_added.as_ref().filter(|(_, at)| at.start == 0).map(|(day, _)| *day),
                    active: BTreeMap::new(),
                    retired: BTreeMap::new(),
                    source: source.clone(),
                };
                if self.table.rows.contains_key(&name) {
                    // Two rows for one prefix: no telling which one holds.
                    self.unread(Some(&name), None, source.clone());
                } else {
                    self.table.rows.insert(name.clone(), entry);
                }
                if let Some(cell) = row.get(active) {
                    self.active_cell(&name, cell);
                }
                if let Some(cell) = row.get(retired) {
                    self.retired_cell(&name, cell);
                }
            }
        }
    }

    fn active_cell(&mut self, prefix: &str, cell: &Text) {
        if cell.cut {
            self.unread(Some(prefix), None, cell.source());
        }
        for chunk in split_top(&cell.text, &CELL) {
            let (outside, inside) = parentheses(chunk);
            let outer = parse(&outside, self.rules);
            for scenario in &outer.scenarios {
                if let Some(row) = self.table.rows.get_mut(prefix) {
                    row.active.insert(scenario.clone(), cell.source());
                }
            }
            let scenarios: Vec<Option<String>> = if outer.scenarios.is_empty() {
                vec![None]
            } else {
                outer.scenarios.iter().cloned().map(Some).collect()
            };
            for scenario in scenarios {
                if !outer.nothing {
                    self.active_qualifier(prefix, scenario.as_deref(), &outer, cell);
                }
                for piece in &inside {
                    let inner = parse(piece, self.rules);
                    self.active_qualifier(prefix, scenario.as_deref(), &inner, cell);
                }
            }
        }
    }

    /// A remark on an active scenario, or on the whole row where `scenario` is `None`.
    fn active_qualifier(&mut self, prefix: &str, scenario: Option<&str>, said: &Parsed, cell: &Text) {
        let subject = Subject {
            scenario: scenario.map(str::to_owned),
            ..Subject::default()
        };
        let bounds = bounds(&said.marks);
        let dated = bounds.first().copied();
        if said.not_enacted {
            self.table.still_runs.push(Remark {
                prefix: Some(prefix.to_owned()),
                scenario: subject.scenario,
                source: cell.source(),
            });
            return;
        }
        if said.only && said.spec && !said.non_spec {
            let subject = Subject {
                arm: Some(Arm::NonSpec),
                ..subject
            };
            self.claim(
                Some(prefix),
                subject,
                dated.unwrap_or(Bound::Undated),
                Place::ActiveColumn,
                cell.source(),
            );
        } else if said.only && !said.precisions.is_empty() {
            let precisions = Some(Precisions::AllBut(said.precisions.clone()));
            let subject = Subject { precisions, ..subject };
            self.claim(
                Some(prefix),
                subject,
                dated.unwrap_or(Bound::Undated),
                Place::ActiveColumn,
                cell.source(),
            );
        } else if !said.marks.is_empty() {
            let precisions = (!said.precisions.is_empty()).then(|| Precisions::These(said.precisions.clone()));
            let arm = said.non_spec.then_some(Arm::NonSpec);
            for mark in &said.marks {
                // "Active since" is no prohibition; "retired", "removed" and "until" are.
                let bound = match mark {
                    Mark::From(_) => continue,
                    Mark::Last(day) => Bound::LastDay(*day),
                    Mark::Gone(day) => Bound::FirstDay(*day),
                };
                let subject = Subject {
                    precisions: precisions.clone(),
                    arm,
                    ..subject.clone()
                };
                self.claim(Some(prefix), subject, bound, Place::ActiveColumn, cell.source());
            }
        } else if said.scenarios.is_empty() && said.precisions.is_empty() && said.leftover.is_empty() && !said.only {
            return;
        } else if said.scenarios.is_empty() || said.only || !said.precisions.is_empty() || said.non_spec {
            self.unread(Some(prefix), scenario, cell.source());
            return;
        }
        if !said.leftover.is_empty() {
            self.unread(Some(prefix), scenario, cell.source());
        }
    }

    fn retired_cell(&mut self, prefix: &str, cell: &Text) {
        if cell.cut {
            self.unread(Some(prefix), None, cell.source());
        }
        for chunk in split_top(&cell.text, &CELL) {
            let said = parse(chunk, self.rules);
            let (outside, _) = parentheses(chunk);
            let subjects = self.subjects(&said, &outside);
            if subjects.is_empty() {
                let says_something = !said.leftover.is_empty() || !said.marks.is_empty();
                if !said.nothing && says_something {
                    self.unread(Some(prefix), None, cell.source());
                }
                continue;
            }
            if !said.non_spec && said.precisions.is_empty() {
                for scenario in &said.scenarios {
                    if let Some(row) = self.table.rows.get_mut(prefix) {
                        row.retired.insert(scenario.clone(), cell.source());
                    }
                }
            }
            self.retire(
                Some(prefix),
                subjects,
                &said,
                None,
                Place::RetiredColumn,
                &cell.source(),
            );
        }
    }

    /// The subjects that a piece of text about retirement names; empty where it names none. `outside` is the piece
    /// without parentheses: scenarios and precisions count only there.
    fn subjects(&self, said: &Parsed, outside: &str) -> Vec<Subject> {
        let named = parse(outside, self.rules);
        let arm = said.non_spec.then_some(Arm::NonSpec);
        let precisions = (!named.precisions.is_empty()).then(|| Precisions::These(named.precisions.clone()));
        if named.scenarios.is_empty() {
            if precisions.is_none() && arm.is_none() {
                return Vec::new();
            }
            return vec![Subject {
                scenario: None,
                precisions,
                arm,
            }];
        }
        let one = |s: String| Subject {
            scenario: Some(s),
            precisions: precisions.clone(),
            arm,
        };
        named.scenarios.into_iter().map(one).collect()
    }

    /// One claim for each subject and bound; `group` is the bound of the notice.
    fn retire(
        &mut self,
        prefix: Option<&str>,
        subjects: Vec<Subject>,
        said: &Parsed,
        group: Option<Bound>,
        place: Place,
        source: &Source,
    ) -> Vec<usize> {
        let mut all = bounds(&said.marks);
        all.extend(group);
        if said.day_zero {
            let added = prefix.and_then(|p| self.table.rows.get(p)).and_then(|r| r.date_added);
            all = vec![added.map_or(Bound::Undated, Bound::FirstDay)];
        }
        if all.is_empty() {
            all.push(Bound::Undated);
        }
        let mut made = Vec::new();
        for subject in subjects {
            for bound in &all {
                let index = self.claim(prefix, subject.clone(), *bound, place, source.clone());
                self.table.claims[index].day_zero = said.day_zero;
                made.push(index);
            }
        }
        made
    }

    // ---- notices --------------------------------------------------------------------------------------------------

    fn close(&mut self) {
        let Some(group) = self.group.take() else { return };
        for (ordinal, preceding, source) in group.marks {
            let targets: Vec<usize> = match ordinal {
                Some(n) => group.tables.get(n).cloned().unwrap_or_default(),
                None if preceding > 0 => group.tables.get(preceding - 1).cloned().unwrap_or_default(),
                None => group.tables.iter().flatten().chain(&group.direct).copied().collect(),
            };
            for index in targets {
                let claim = &mut self.table.claims[index];
                if !claim.day_zero && claim.not_enacted.is_none() {
                    claim.not_enacted = Some(source.clone());
                }
            }
        }
    }

    fn heading(&mut self, level: u8, text: &Text) {
        if self.group.as_ref().is_some_and(|g| level <= g.level) {
            self.close();
        }
        let lower = text.text.to_ascii_lowercase();
        if let Some((day, _)) = super::phrase::dates(&lower).into_iter().next() {
            self.close();
            self.group = Some(Group {
                level,
                bound: Some(Bound::LastDay(day)),
                ..Group::default()
            });
        }
    }

    fn prefixes(&self, text: &str) -> Vec<String> {
        let mut out = Vec::new();
        for code in codes(text) {
            if self.table.rows.contains_key(code) && !out.iter().any(|p| p == code) {
                out.push(code.to_owned());
            }
        }
        out
    }

    fn paragraph(&mut self, text: &Text) {
        let source = text.source();
        let all = self.prefixes(&text.text);
        let mut made = Vec::new();
        let mut remarks = Vec::new();
        for clause in clauses(&text.text) {
            let said = parse(clause, self.rules);
            let mut prefixes = self.prefixes(clause);
            if said.last_day && prefixes.is_empty() && self.group.is_some() {
                if let (Some(group), Some(bound)) = (&mut self.group, bounds(&said.marks).first()) {
                    group.bound = Some(*bound);
                }
                continue;
            }
            if prefixes.is_empty() && all.len() == 1 {
                prefixes.clone_from(&all);
            }
            let dated = said.marks.iter().any(|m| !matches!(m, Mark::From(_)));
            if said.last_day && prefixes.is_empty() {
                // A last day for something that the reader cannot name.
                self.unread(None, None, source.clone());
            } else if dated && !prefixes.is_empty() && (said.last_day || self.group.is_some()) {
                let subjects = self.subjects(&said, clause);
                let subjects = if subjects.is_empty() {
                    vec![Subject::default()]
                } else {
                    subjects
                };
                for prefix in prefixes {
                    made.extend(self.retire(Some(&prefix), subjects.clone(), &said, None, Place::Notice, &source));
                }
            }
            if said.not_enacted {
                let ordinals = &self.rules.phrases.ordinals;
                let ordinal = ordinals
                    .iter()
                    .position(|o| has_any(&clause.to_ascii_lowercase(), std::slice::from_ref(o)));
                remarks.push(ordinal);
            }
        }
        match &mut self.group {
            Some(group) => {
                let preceding = group.tables.len();
                group.direct.extend(made);
                group
                    .marks
                    .extend(remarks.into_iter().map(|o| (o, preceding, source.clone())));
            }
            None if !remarks.is_empty() => {
                for index in made {
                    self.table.claims[index].not_enacted = Some(source.clone());
                }
            }
            None => {}
        }
    }

    fn table(&mut self, header: &[Text], rows: &[Vec<Text>]) {
        let names = &self.rules.tables;
        let model = has_column(header, &names.model);
        let arms = has_column(header, &names.deprecated_arm);
        let retired = has_column(header, &names.deprecated);
        if let (Some(scenario), Some(status)) = (has_column(header, &names.scenario), has_column(header, &names.status))
        {
            self.scenario_table(scenario, has_column(header, &names.lengths), status, rows);
        } else if let (Some(model), Some(ends)) = (model, arms.or(retired)) {
            let remains = has_column(header, &names.remains);
            let made = self.notice_table(model, ends, remains, rows);
            if let Some(group) = &mut self.group {
                group.tables.push(made);
            }
        } else if let (Some(model), Some(engines)) = (model, has_column(header, &names.engines)) {
            let drafts = has_column(header, &names.drafts);
            for row in rows {
                let (Some(model), Some(engines)) = (row.get(model), row.get(engines)) else {
                    continue;
                };
                for prefix in codes(&model.text) {
                    let entry = EngineRow {
                        engines: engines.text.trim().to_owned(),
                        drafts: cell(row, drafts).map(|c| c.text.trim().to_owned()).unwrap_or_default(),
                        source: engines.source(),
                    };
                    self.table.engines.insert(prefix.to_owned(), entry);
                }
            }
        }
    }

    fn notice_table(&mut self, model: usize, ends: usize, remains: Option<usize>, rows: &[Vec<Text>]) -> Vec<usize> {
        let group = self.group.as_ref().and_then(|g| g.bound);
        let mut made = Vec::new();
        for row in rows {
            let (Some(model), Some(ends)) = (row.get(model), row.get(ends)) else {
                continue;
            };
            let prefixes: Vec<String> = codes(&model.text).into_iter().map(str::to_owned).collect();
            let said = parse(&ends.text, self.rules);
            let (outside, _) = parentheses(&ends.text);
            let subjects = self.subjects(&said, &outside);
            if prefixes.is_empty() || subjects.is_empty() || ends.cut {
                let only = (prefixes.len() == 1).then(|| prefixes[0].as_str());
                self.unread(only, None, ends.source());
                continue;
            }
            for prefix in &prefixes {
                made.extend(self.retire(
                    Some(prefix),
                    subjects.clone(),
                    &said,
                    group,
                    Place::Notice,
                    &ends.source(),
                ));
                for clause in cell(row, remains).map(|c| clauses(&c.text)).unwrap_or_default() {
                    let said = parse(clause, self.rules);
                    let subjects = self.subjects(&said, clause);
                    if !said.marks.is_empty() && !subjects.is_empty() {
                        let source = cell(row, remains).map_or_else(|| ends.source(), Text::source);
                        made.extend(self.retire(Some(prefix), subjects, &said, None, Place::Notice, &source));
                    }
                }
            }
        }
        made
    }

    fn scenario_table(&mut self, scenario: usize, lengths: Option<usize>, status: usize, rows: &[Vec<Text>]) {
        for row in rows {
            let (Some(name), Some(status)) = (row.get(scenario), row.get(status)) else {
                continue;
            };
            let mut ids = parse(&name.text, self.rules).scenarios;
            if let Some((isl, osl)) = cell(row, lengths).and_then(|c| pair(&c.text)) {
                ids.extend(self.rules.scenario_of_lengths(isl, osl).map(str::to_owned));
            }
            ids.sort();
            ids.dedup();
            let [id] = ids.as_slice() else {
                // An unknown scenario harms nobody until a config uses it, and then it has no id either.
                continue;
            };
            let first = clauses(&status.text).first().copied().unwrap_or_default();
            let said = parse(first, self.rules);
            let lower = first.to_ascii_lowercase();
            let opens = |list: &[String]| list.iter().any(|p| lower.starts_with(&p.to_ascii_lowercase()));
            let subject = Subject {
                scenario: Some(id.clone()),
                ..Subject::default()
            };
            if opens(&self.rules.phrases.deprecated) {
                let bound = bounds(&said.marks).first().copied().unwrap_or(Bound::Undated);
                self.claim(None, subject, bound, Place::Scenarios, status.source());
            } else if opens(&self.rules.phrases.active) {
                self.table.scenarios.insert(id.clone(), status.source());
                for mark in said.marks.iter().filter(|m| !matches!(m, Mark::From(_))) {
                    let bound = bounds(&[*mark])[0];
                    self.claim(None, subject.clone(), bound, Place::Scenarios, status.source());
                }
            } else {
                self.unread(None, Some(id), status.source());
            }
            if has_any(&status.text.to_ascii_lowercase(), &self.rules.phrases.arm_unpublished) {
                let remark = Remark {
                    prefix: None,
                    scenario: Some(id.clone()),
                    source: status.source(),
                };
                self.table.arm_unpublished.push(remark);
            }
        }
    }
}

/// `8192 / 1024`.
fn pair(text: &str) -> Option<(u64, u64)> {
    let (isl, osl) = text.split_once('/')?;
    Some((isl.trim().parse().ok()?, osl.trim().parse().ok()?))
}
