//! Weighs the claims that apply to one question.

use chrono::NaiveDate;
use serde::Serialize;

use super::{Arm, Bound, Claim, ModelsTable, Place, Precisions, Remark, Source};

/// What is asked: one arm of one scenario of one model in one precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query<'q> {
    /// Model prefix, exactly as the config entry has it.
    pub prefix: &'q str,
    /// Scenario id of the rules; see [`super::ModelsRules::scenario_of_lengths`].
    pub scenario: &'q str,
    /// Precision of the config entry.
    pub precision: &'q str,
    /// With or without speculative decoding.
    pub arm: Arm,
}

/// The answer for one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "status")]
pub enum Status {
    /// Allowed on that day.
    Active {
        /// Last allowed day, if an end is announced.
        until: Option<NaiveDate>,
        /// Days from the asked day to the last one; 0 on the last day itself.
        days_left: Option<i64>,
        /// Where the file says so: the announcement, else the matrix row.
        source: Source,
    },
    /// Prohibited on that day.
    Deprecated {
        /// First prohibited day, if one is given.
        since: Option<NaiveDate>,
        /// The statement that prohibits first.
        source: Source,
        /// Other statements that prohibit it too.
        also: Vec<Source>,
    },
    /// The file says both, or says something that the reader cannot interpret: a person must decide.
    Contradictory {
        /// The statements.
        sources: Vec<Source>,
        /// What is contradictory.
        why: String,
    },
    /// The file does not speak about it.
    Unknown {
        /// What is missing.
        why: String,
        /// A row that may be meant.
        near: Option<Source>,
    },
}

impl Claim {
    fn speaks_of(&self, q: &Query<'_>) -> bool {
        let precision = |set: &Precisions| match set {
            Precisions::These(list) => list.iter().any(|p| p.eq_ignore_ascii_case(q.precision)),
            Precisions::AllBut(list) => !list.iter().any(|p| p.eq_ignore_ascii_case(q.precision)),
        };
        self.prefix.as_deref().is_none_or(|p| p == q.prefix)
            && self.scenario.as_deref().is_none_or(|s| s == q.scenario)
            && self.precisions.as_ref().is_none_or(precision)
            && self.arm.is_none_or(|a| a == q.arm)
    }

    /// Whether this dated claim gives the day of an undated one: the same kind of subject, or the same matrix row
    /// retired as a whole.
    fn dates(&self, undated: &Claim) -> bool {
        let covers = |mine: bool, theirs: bool| mine || !theirs;
        let same_kind = covers(self.scenario.is_some(), undated.scenario.is_some())
            && covers(self.precisions.is_some(), undated.precisions.is_some())
            && covers(self.arm.is_some(), undated.arm.is_some());
        let whole_row = self.prefix.is_some()
            && self.source.line == undated.source.line
            && self.scenario.is_none()
            && self.precisions.is_none()
            && self.arm.is_none();
        same_kind || whole_row
    }
}

impl Remark {
    fn speaks_of(&self, q: &Query<'_>) -> bool {
        self.prefix.as_deref().is_none_or(|p| p == q.prefix) && self.scenario.as_deref().is_none_or(|s| s == q.scenario)
    }
}

fn sources<'c>(claims: impl IntoIterator<Item = &'c Source>) -> Vec<Source> {
    let mut out: Vec<Source> = claims.into_iter().cloned().collect();
    out.sort();
    out.dedup();
    out
}

impl ModelsTable {
    /// The answer for one day (UTC). Prohibitions that are in force win over permissions, the earlier one over the
    /// later one; a prohibition that the file itself calls not carried out is a contradiction (domain guide 8.3).
    #[must_use]
    pub fn status(&self, q: &Query<'_>, day: NaiveDate) -> Status {
        let claims: Vec<&Claim> = self.claims.iter().filter(|c| c.speaks_of(q)).collect();
        let own = claims.iter().any(|c| c.prefix.is_some());
        let Some(row) = self.rows.get(q.prefix) else {
            if !own {
                return self.unknown_prefix(q);
            }
            return self.weigh(q, day, &claims, None);
        };
        let listed = row.active.get(q.scenario).or_else(|| row.retired.get(q.scenario));
        let whole = claims
            .iter()
            .any(|c| c.prefix.is_some() && c.scenario.is_none() && c.precisions.is_none());
        let named = claims.iter().any(|c| c.scenario.is_some());
        if listed.is_none() && !whole && !named {
            return Status::Unknown {
                why: format!(
                    "the support matrix lists {} of {} neither as active nor as deprecated",
                    q.scenario, q.prefix
                ),
                near: Some(row.source.clone()),
            };
        }
        self.weigh(q, day, &claims, row.active.get(q.scenario))
    }

    fn weigh(&self, q: &Query<'_>, day: NaiveDate, claims: &[&Claim], active: Option<&Source>) -> Status {
        let first = |c: &Claim| c.bound.first_prohibited();
        let future: Vec<&Claim> = claims
            .iter()
            .copied()
            .filter(|c| first(c).is_some_and(|d| d > day))
            .collect();
        // An undated statement describes what a dated one announces, if there is one about the same thing.
        let in_force = |c: &&Claim| match first(c) {
            Some(start) => start <= day,
            None => !future.iter().any(|f| f.dates(c)),
        };
        let forced: Vec<&Claim> = claims.iter().copied().filter(in_force).collect();
        let still: Vec<&Remark> = self
            .still_runs
            .iter()
            .filter(|r| r.prefix.is_some() && r.speaks_of(q))
            .collect();
        let softened = |c: &Claim| c.not_enacted.is_some() || (c.arm.is_some() && !c.day_zero && !still.is_empty());
        let firm: Vec<&Claim> = forced.iter().copied().filter(|c| !softened(c)).collect();

        if !firm.is_empty() {
            return self.firm(q, day, &firm, &future, active);
        }
        if !forced.is_empty() {
            let remarks = forced.iter().filter_map(|c| c.not_enacted.as_ref());
            let all = forced
                .iter()
                .map(|c| &c.source)
                .chain(remarks)
                .chain(still.iter().map(|r| &r.source));
            return Status::Contradictory {
                sources: sources(all),
                why: "its end was announced and the day has passed, but the file says that it was not carried out"
                    .into(),
            };
        }
        let unread: Vec<&Remark> = self.unread.iter().filter(|r| r.speaks_of(q)).collect();
        if !unread.is_empty() {
            return Status::Contradictory {
                sources: sources(unread.iter().map(|r| &r.source)),
                why: "the file says something here that could not be interpreted".into(),
            };
        }
        let nearest = future.iter().copied().min_by_key(|c| (first(c), c.source.line));
        let general: Vec<&Remark> = self.arm_unpublished.iter().filter(|r| r.speaks_of(q)).collect();
        // Something said about this model's own scenario or arm goes before what is said in general.
        let own_end = |c: &&Claim| c.prefix.is_some() && c.scenario.is_some();
        let specific = claims.iter().any(|c| c.arm.is_some()) || future.iter().any(own_end);
        if q.arm == Arm::NonSpec && !general.is_empty() && !specific {
            let row = self.rows.get(q.prefix).map(|r| &r.source);
            return Status::Contradictory {
                sources: sources(general.iter().map(|r| &r.source).chain(active).chain(row)),
                why:
                    "in general the arm without speculative decoding is not run, but nothing is said about this model's"
                        .into(),
            };
        }
        let until = nearest.and_then(first).and_then(|d| d.pred_opt());
        match (nearest, active) {
            (Some(claim), _) => Status::Active {
                until,
                days_left: until.map(|d| (d - day).num_days()),
                source: claim.source.clone(),
            },
            (None, Some(source)) => Status::Active {
                until: None,
                days_left: None,
                source: source.clone(),
            },
            (None, None) => Status::Unknown {
                why: format!(
                    "the support matrix does not list {} of {} as active",
                    q.scenario, q.prefix
                ),
                near: self.rows.get(q.prefix).map(|r| r.source.clone()),
            },
        }
    }

    /// A firm prohibition is in force; it still may collide with a permission for the very same day.
    fn firm(
        &self,
        q: &Query<'_>,
        day: NaiveDate,
        firm: &[&Claim],
        future: &[&Claim],
        active: Option<&Source>,
    ) -> Status {
        // "D is the last day" against "retired D": on D itself the file allows and forbids.
        let last = future.iter().copied().find(|c| c.bound == Bound::LastDay(day));
        let same_day = firm
            .iter()
            .all(|c| c.bound == Bound::FirstDay(day) && last.is_some_and(|l| l.dates(c)));
        if let Some(last) = last.filter(|_| same_day) {
            return Status::Contradictory {
                sources: sources(firm.iter().map(|c| &c.source).chain([&last.source])),
                why: format!("{day} is called the last allowed day and the first prohibited one"),
            };
        }
        // Listed as active and, without any date, as deprecated.
        let bare = firm.iter().all(|c| {
            c.bound == Bound::Undated
                && c.place == Place::RetiredColumn
                && c.precisions.is_none()
                && c.arm.is_none()
                && c.prefix.is_some()
        });
        if let Some(active) = active.filter(|_| bare) {
            return Status::Contradictory {
                sources: sources(firm.iter().map(|c| &c.source).chain([active])),
                why: format!("{} of {} is listed as active and as deprecated", q.scenario, q.prefix),
            };
        }
        let key = |c: &&&Claim| (c.bound.first_prohibited().unwrap_or(NaiveDate::MAX), c.source.line);
        let Some(earliest) = firm.iter().min_by_key(key) else {
            return Status::Unknown {
                why: "no statement".into(),
                near: None,
            };
        };
        let others = sources(firm.iter().map(|c| &c.source).filter(|s| **s != earliest.source));
        Status::Deprecated {
            since: earliest.bound.first_prohibited(),
            source: earliest.source.clone(),
            also: others,
        }
    }

    fn unknown_prefix(&self, q: &Query<'_>) -> Status {
        // `family2.6` beside a row `family2.5` whose name speaks of 2.6: say so, but decide nothing.
        let stem = |p: &str| p.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned();
        let version = &q.prefix[stem(q.prefix).len()..];
        let near = self
            .rows
            .iter()
            .find(|(prefix, row)| stem(prefix) == stem(q.prefix) && !version.is_empty() && row.class.contains(version))
            .map(|(_, row)| Source {
                line: row.source.line,
                text: format!("{} | {}", row.class, row.source.text),
            });
        Status::Unknown {
            why: format!("the support matrix has no row for the prefix {}", q.prefix),
            near,
        }
    }
}
