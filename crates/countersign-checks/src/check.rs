//! What a check is.

use std::marker::PhantomData;

use countersign_core::{CheckReport, OutcomeKind};
use countersign_policy::{LoadError, LoadedPolicy, Policy};
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;

use crate::context::Context;

/// One check, written as a type. The registry turns it into a [`Check`].
pub trait TypedCheck: Send + Sync + 'static {
    /// Its parameters in the policy. Unknown fields must be errors (`deny_unknown_fields`).
    type Params: DeserializeOwned + JsonSchema;
    /// Stable name.
    const SLUG: &'static str;
    /// Every outcome it can have, `Unavailable` included; each needs a fixture.
    const OUTCOMES: &'static [OutcomeKind];
    /// Whether it judges what people wrote: the sign-off, who signed it, the description. Without them its answer means nothing.
    const NEEDS_CONVERSATION: bool = false;

    /// Whether it may take long, alone or in what it is the first to ask for: such checks begin before all others.
    const LONG: bool = false;

    /// Judges. Pure.
    fn run(cx: &Context<'_>, params: &Self::Params) -> CheckReport;
}

/// A check as the engine sees it.
pub trait Check: Send + Sync {
    /// Stable name.
    fn slug(&self) -> &'static str;
    /// Every outcome it can have.
    fn outcomes(&self) -> &'static [OutcomeKind];
    /// Whether it judges what people wrote: the sign-off, who signed it, the description.
    fn needs_conversation(&self) -> bool;
    /// Whether it begins before others, since it may take long.
    fn long(&self) -> bool;
    /// The head comment of its file: title line, then sections. Source of its documentation page.
    fn doc(&self) -> String;
    /// The source text of its file, for tests that compare it with the fixtures.
    fn source(&self) -> &'static str;
    /// JSON Schema of its parameters.
    fn params_schema(&self) -> Schema;
    /// Whether the policy's parameters can be read.
    ///
    /// # Errors
    /// The place and the cause.
    fn check_params(&self, policy: &LoadedPolicy) -> Result<(), LoadError>;
    /// Judges with the policy's parameters.
    fn run(&self, cx: &Context<'_>) -> CheckReport;
}

/// Bridges [`TypedCheck`] to [`Check`].
pub(crate) struct Registered<T> {
    pub(crate) source: &'static str,
    pub(crate) marker: PhantomData<fn() -> T>,
}

impl<T: TypedCheck> Check for Registered<T> {
    fn slug(&self) -> &'static str {
        T::SLUG
    }

    fn outcomes(&self) -> &'static [OutcomeKind] {
        T::OUTCOMES
    }

    fn needs_conversation(&self) -> bool {
        T::NEEDS_CONVERSATION
    }

    fn long(&self) -> bool {
        T::LONG
    }

    fn doc(&self) -> String {
        self.source
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .map(|line| line.trim_start_matches("//!").strip_prefix(' ').unwrap_or_default())
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn source(&self) -> &'static str {
        self.source
    }

    fn params_schema(&self) -> Schema {
        schemars::schema_for!(T::Params)
    }

    fn check_params(&self, policy: &LoadedPolicy) -> Result<(), LoadError> {
        policy.params::<T::Params>(T::SLUG).map(drop)
    }

    fn run(&self, cx: &Context<'_>) -> CheckReport {
        match cx.loaded.params::<T::Params>(T::SLUG) {
            Ok(params) => T::run(cx, &params),
            Err(error) => Policy::broken_parameters(T::SLUG, &error.to_string()),
        }
    }
}
