//! What checks see: the evidence, the policy, and facts derived from both, each computed once.

use std::sync::{Arc, OnceLock};

use countersign_codeowners::CodeOwners;
use countersign_core::evidence::ChangedFile;
use countersign_core::{Cause, CauseKind, CommitSha, Evidence, Observed};
use countersign_matrix::Configs;
use countersign_policy::{LoadedPolicy, Policy, ScriptRules};
use countersign_records::changelog::{ChangelogRules, History};
use countersign_records::models::{ModelsRules, ModelsTable};
use countersign_shell::ScriptCache;
use countersign_signoff::{AuthorInfo, Recognition, Template};

use crate::facts::acts::Reader;
use crate::facts::affected::{self, Affected};
use crate::facts::launches::Launches;
use crate::facts::looked::{Changed, Looking};
use crate::facts::points::{self, Points};
use crate::facts::reuse::{self, Reuse};
use crate::facts::scripts::{self, Scripts};
use crate::facts::sweep::{self, Sweep};
use crate::memo::Memo;

/// See the module.
pub struct Context<'a> {
    /// The frozen facts.
    pub evidence: &'a Evidence,
    /// The policy with places.
    pub loaded: &'a LoadedPolicy,
    memo: Memo,
    recognition: OnceLock<Recognition>,
    codeowners: OnceLock<Observed<(String, Arc<CodeOwners>)>>,
    template: OnceLock<Result<Template, Cause>>,
    reuse: OnceLock<Result<Reuse, Cause>>,
    points: OnceLock<Result<Points, Cause>>,
    affected: OnceLock<Result<Arc<Affected>, Cause>>,
    launches: OnceLock<Result<Launches<'a>, Cause>>,
    changed_scripts: OnceLock<Changed>,
    scripts: OnceLock<Result<Scripts, Cause>>,
    sweep: OnceLock<Result<Option<Sweep<'a>>, Cause>>,
}

impl<'a> Context<'a> {
    /// Over one set of facts and one policy.
    #[must_use]
    pub fn new(evidence: &'a Evidence, loaded: &'a LoadedPolicy) -> Self {
        Self::with_memo(evidence, loaded, Memo::default())
    }

    /// Over one set of facts and one policy, with what earlier judgements by this policy have read.
    #[must_use]
    pub fn with_memo(evidence: &'a Evidence, loaded: &'a LoadedPolicy, memo: Memo) -> Self {
        Self {
            evidence,
            loaded,
            memo: memo.for_one(),
            recognition: OnceLock::new(),
            codeowners: OnceLock::new(),
            template: OnceLock::new(),
            reuse: OnceLock::new(),
            points: OnceLock::new(),
            affected: OnceLock::new(),
            launches: OnceLock::new(),
            changed_scripts: OnceLock::new(),
            scripts: OnceLock::new(),
            sweep: OnceLock::new(),
        }
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &'a Policy {
        &self.loaded.policy
    }

    /// The sign-off, read.
    pub fn recognition(&self) -> &Recognition {
        self.recognition.get_or_init(|| {
            let signoff = &self.evidence.signoff;
            let author = AuthorInfo {
                login: signoff.author.as_str().to_owned(),
                is_bot: signoff.author_is_bot,
                is_self: false,
            };
            countersign_signoff::recognise(&signoff.body, &author, &self.policy().signoff)
        })
    }

    /// The changed files.
    ///
    /// # Errors
    /// Why they are not known; an absent list is unknown too.
    pub fn changed_files(&self) -> Result<&'a [ChangedFile], Cause> {
        match &self.evidence.changed_files {
            Observed::Present(files) => Ok(files),
            Observed::Absent => Err(Cause::new(
                CauseKind::NotRecorded,
                "changed files",
                "they were not gathered",
            )),
            Observed::Unavailable(cause) => Err(cause.clone()),
        }
    }

    /// Trusted CODEOWNERS and its path; the first place that has one counts.
    pub fn codeowners(&self) -> &Observed<(String, Arc<CodeOwners>)> {
        self.codeowners.get_or_init(|| {
            for path in &self.policy().paths.codeowners {
                match self.evidence.trusted_file(path) {
                    Observed::Present(text) => {
                        return Observed::Present((path.clone(), Arc::new(CodeOwners::parse(&text))));
                    }
                    Observed::Absent => {}
                    Observed::Unavailable(cause) => return Observed::Unavailable(cause),
                }
            }
            Observed::Absent
        })
    }

    /// The trusted checklist template.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn template(&self) -> Result<&Template, &Cause> {
        self.template
            .get_or_init(|| {
                let path = &self.policy().paths.template;
                match self.evidence.trusted_file(path) {
                    Observed::Present(text) => Template::parse(&text, &self.policy().signoff).map_err(|error| {
                        Cause::new(
                            CauseKind::Malformed,
                            format!("{path} on the target branch"),
                            error.to_string(),
                        )
                    }),
                    Observed::Absent => Err(Cause::new(
                        CauseKind::Malformed,
                        format!("{path} on the target branch"),
                        "the file is not there",
                    )),
                    Observed::Unavailable(cause) => Err(cause),
                }
            })
            .as_ref()
    }

    /// The newest authorised reuse command, and what stood beside it.
    ///
    /// # Errors
    /// Why comments are not known.
    pub fn reuse(&self) -> Result<&Reuse, &Cause> {
        self.reuse
            .get_or_init(|| reuse::resolve(self.evidence, self.policy()))
            .as_ref()
    }

    /// What the pull request would benchmark.
    ///
    /// # Errors
    /// What could not be read.
    pub fn points(&self) -> Result<&Points, &Cause> {
        self.points
            .get_or_init(|| points::compute(self.evidence, self.policy(), &self.memo))
            .as_ref()
    }

    /// The entries that the pull request touches.
    ///
    /// # Errors
    /// What could not be read.
    pub fn affected(&self) -> Result<&Affected, &Cause> {
        self.shared_affected().map(|affected| &**affected)
    }

    fn shared_affected(&self) -> Result<&Arc<Affected>, &Cause> {
        self.affected
            .get_or_init(|| affected::compute(self.evidence, self.policy(), &self.memo).map(Arc::new))
            .as_ref()
    }

    /// What the points of touched entries would start.
    ///
    /// # Errors
    /// What could not be read, or that the policy has no rules for it.
    pub fn launches(&self) -> Result<&Launches<'a>, &Cause> {
        self.launches
            .get_or_init(|| {
                let policy = self.policy();
                let rules = self.section("derive", &policy.derive)?;
                let affected = self.shared_affected().map_err(Cause::clone)?.clone();
                Launches::new(self.evidence, policy, rules, affected, self.memo.clone())
            })
            .as_ref()
    }

    /// Master configs and runners of a commit.
    ///
    /// # Errors
    /// What could not be read.
    pub fn configs_at(&self, commit: &CommitSha) -> Result<Arc<Configs>, Cause> {
        self.memo.configs(self.evidence, self.policy(), commit)
    }

    /// The changelog of a commit, read; its text is given.
    pub fn history(&self, commit: &CommitSha, text: &str, rules: &ChangelogRules) -> Arc<History> {
        let tree = self.evidence.trees.get(commit).and_then(Observed::present);
        match tree.and_then(|tree| tree.entries.get(&self.policy().layout.changelog)) {
            Some(entry) => self.memo.history(&entry.id, text, rules),
            None => Arc::new(History::read(text.as_bytes(), rules)),
        }
    }

    /// The models file of the target branch, read; nothing where there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn models(&self, rules: &ModelsRules) -> Result<Option<Arc<ModelsTable>>, Cause> {
        let path = &self.policy().paths.models;
        let text = match self.evidence.trusted_file(path) {
            Observed::Present(text) => text,
            Observed::Absent => return Ok(None),
            Observed::Unavailable(cause) => return Err(cause),
        };
        let read = self.memo.models(&text, rules).map_err(|error| {
            let what = format!("{path} on the target branch");
            Cause::new(CauseKind::Malformed, what, error.to_string())
        })?;
        Ok(Some(read))
    }

    /// The scripts that the pull request changes or that touched entries run.
    ///
    /// # Errors
    /// What could not be read, or that the policy has no rules for it.
    pub fn scripts(&self) -> Result<&Scripts, &Cause> {
        self.scripts
            .get_or_init(|| {
                let policy = self.policy();
                let rules = self.section("scripts", &policy.scripts)?;
                let launches = self.launches().map_err(Cause::clone)?;
                self.looking(rules, |looking| {
                    let changed = self.changed_scripts(rules, looking)?;
                    scripts::collect(looking, policy, rules, launches, changed)
                })
            })
            .as_ref()
    }

    /// Begins with [`Context::scripts`], as far as it needs nothing else. What cannot be read is told there.
    pub(crate) fn read_scripts_ahead(&self) {
        if let Some(rules) = &self.policy().scripts {
            self.looking(rules, |looking| {
                if let Ok(changed) = self.changed_scripts(rules, looking) {
                    // What it reads is new: parsed scripts that are kept are of more use to others.
                    changed.look(looking, &ScriptCache::default());
                }
            });
        }
    }

    fn changed_scripts(&self, rules: &ScriptRules, looking: Looking<'_>) -> Result<&Changed, Cause> {
        let files = self.evidence.changed_files.known().map_err(Cause::clone)?;
        let files = files.map_or(&[][..], Vec::as_slice);
        Ok(self.changed_scripts.get_or_init(|| Changed::of(files, rules, looking)))
    }

    fn looking<T>(&self, rules: &ScriptRules, then: impl FnOnce(Looking<'_>) -> T) -> T {
        let reader = Reader::new(rules, self.memo.patterns(rules));
        then(Looking {
            evidence: self.evidence,
            derive: &self.policy().derive,
            reader: &reader,
        })
    }

    /// A section that only some checks need.
    ///
    /// # Errors
    /// The policy does not have it.
    pub fn section<T>(&self, name: &str, section: &'a Option<T>) -> Result<&'a T, Cause> {
        section.as_ref().ok_or_else(|| {
            Cause::new(
                CauseKind::Malformed,
                format!("the section `{name}` of the policy"),
                "it is not there, and this check needs it",
            )
        })
    }

    /// The run that proves the points; `None` where there are no points.
    ///
    /// # Errors
    /// What could not be read.
    pub fn sweep(&self) -> Result<Option<&Sweep<'a>>, &Cause> {
        self.sweep
            .get_or_init(|| {
                let selected = match self.points() {
                    Err(cause) => return Err(cause.clone()),
                    Ok(Points::Nothing | Points::Refused(_)) => return Ok(None),
                    Ok(Points::Selected(selected)) => selected,
                };
                let pinned = self.reuse().ok().and_then(|reuse| reuse.command.as_ref()?.run);
                sweep::weigh(self.evidence, self.policy(), selected, pinned).map(Some)
            })
            .as_ref()
            .map(Option::as_ref)
    }
}
