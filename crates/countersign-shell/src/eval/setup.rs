//! What an evaluation is given: the scripts, the environment, and what the caller knows of programs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::limits::Limits;
use crate::output::{Command, Word};

/// The scripts of one state of the repository.
pub trait Files {
    /// Text of the file at a path of the tree; None when the tree has no such file.
    fn read(&self, path: &str) -> Option<Arc<str>>;
}

impl Files for BTreeMap<String, Arc<str>> {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        self.get(path).cloned()
    }
}

/// How a variable that the caller did not name is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rest {
    /// As not set; its name is listed in [`Evaluation::assumed_unset`](crate::Evaluation::assumed_unset).
    #[default]
    Unset,
    /// As unknown.
    Unknown,
}

/// The environment of one point.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Variables with their values (exported).
    pub variables: BTreeMap<String, String>,
    /// Names whose value is not known; they may also be unset.
    pub unknown: BTreeSet<String>,
    /// Prefixes of such names (`SLURM_`).
    pub unknown_prefixes: Vec<String>,
    /// Names that are known to be set and not empty, without a known value.
    pub filled: BTreeSet<String>,
    /// Variables of which each of several points has a value of its own, by point; all lists are equally long, and no
    /// other list names these variables. The evaluation is that of the first point and of those that
    /// [`Evaluation::holds`](crate::Evaluation::holds) names besides.
    pub each: BTreeMap<String, Vec<String>>,
    /// All others.
    pub rest: Rest,
}

/// What to evaluate.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Path of the script in the tree.
    pub script: String,
    /// How the script is called (`$0`); the path in the tree when empty.
    pub called_as: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Absolute places where the tree is found at run time, the working directory first (`/workspace`).
    pub roots: Vec<String>,
    /// Environment.
    pub environment: Environment,
    /// Files outside of the tree that are known to be there, with their texts, by absolute path.
    pub outside: BTreeMap<String, Arc<str>>,
    /// Bounds.
    pub limits: Limits,
}

/// What the caller knows about a program that is not run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its output.
    pub output: Option<String>,
    /// Its exit status.
    pub status: Option<i32>,
}

/// Source of such answers: asked for every program, right after it was recorded.
pub trait Answers {
    /// What is known about the command; None when nothing is.
    fn answer(&self, command: &Command) -> Option<Answer>;

    /// Whether anything is known of a program, whatever its arguments.
    fn knows(&self, program: &str) -> bool {
        let _ = program;
        true
    }

    /// Whether the caller is going to look at a command of these words. One that it does not look at, and knows nothing of, is not
    /// kept: it costs no memory, and points that are evaluated together may part around it.
    fn reads(&self, argv: &[Word], assignments: &[(Arc<str>, Word)]) -> bool {
        let _ = (argv, assignments);
        true
    }

    /// Whether the caller may look at a command whose first word is this name of a program or function, whatever the
    /// others. It is not asked of commands of the shell itself, and of those that start others (`bash`, `eval`, `timeout`).
    fn may_read(&self, name: &str, is_function: bool) -> bool {
        let _ = (name, is_function);
        true
    }
}
