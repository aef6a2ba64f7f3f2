//! CODEOWNERS parsing and matching with GitHub's semantics. Pure.
//!
//! The rules implemented here are the documented ones ("About code owners" in GitHub's
//! documentation), the ones the domain guide restates (section 2), and, where both are silent,
//! what GitHub's own error list for such a file is known to answer. In short:
//!
//! - the **last** matching rule wins and owners never accumulate;
//! - a rule without owners makes its paths explicitly *unowned*, which is not the same as a
//!   path that no rule matches ([`Match::Unowned`] and [`Match::Unmatched`]);
//! - an invalid line is skipped, never the whole file; it is kept as a [`Diagnostic`] that says
//!   where it is, what is wrong and what to write instead;
//! - paths are case-sensitive, logins, teams and addresses are not;
//! - a file of [`MAX_FILE_BYTES`] or more has no effect at all.
//!
//! Whether an owner exists and may write to the repository cannot be known here; such owners are
//! kept as written, and the caller decides what an unreadable team means.
//!
//! ```
//! use countersign_codeowners::{CodeOwners, Match};
//!
//! let file = CodeOwners::parse("*  @org/core\n/docs/  @Writer  # prose\n/docs/generated/\n");
//! assert!(file.diagnostics().is_empty());
//! assert!(file.owners_of("src/main.rs").is_catch_all());
//! assert!(file.owners_of("docs/a/b.md").owners()[0].is_user("writer"));
//! assert!(matches!(file.owners_of("docs/generated/x"), Match::Unowned { rule } if rule.line() == 3));
//! ```

mod diagnostic;
mod owner;
mod parse;
mod pattern;
mod ruleset;

pub use diagnostic::{Diagnostic, Effect, Problem};
pub use owner::{InvalidOwner, Owner};
pub use pattern::{MAX_PATTERN_BYTES, Pattern, PatternProblem};
pub use ruleset::{CodeOwners, MAX_DIAGNOSTICS, MAX_FILE_BYTES, Match, Rule};
