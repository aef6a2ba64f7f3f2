//! The registry: one line a check. The line declares the module, and puts its type into the table.

use std::marker::PhantomData;

use crate::check::{Check, Registered};

macro_rules! registry {
    ($($module:ident :: $check:ident),* $(,)?) => {
        $(mod $module;)*

        /// All checks of this version, in the order of the list.
        #[must_use]
        pub fn all() -> &'static [&'static dyn Check] {
            static ALL: &[&dyn Check] = &[$(
                &Registered::<$module::$check> { source: include_str!(concat!(stringify!($module), ".rs")), marker: PhantomData }
            ),*];
            ALL
        }

        /// Names of the modules, for the test that no file is left out.
        #[must_use]
        pub fn modules() -> &'static [&'static str] {
            &[$(stringify!($module)),*]
        }
    };
}

registry![
    codeowner::CodeOwner,
    sweep::Sweep,
    evals::Evals,
    reuse_command::ReuseCommand,
    template::Template,
    image::Image,
    engine_first::EngineFirst,
    deprecation::Deprecation,
    architecture::Architecture,
    chat_template::ChatTemplate,
    engine_patch::EnginePatch,
    golden_al::GoldenAl,
    append_only::AppendOnly,
    changelog::Changelog,
    labels::Labels,
    draft_as_shipped::DraftAsShipped,
    recipe::Recipe,
    pareto::Pareto,
    description::Description,
];

/// The check with a name.
#[must_use]
pub fn find(slug: &str) -> Option<&'static dyn Check> {
    all().iter().copied().find(|check| check.slug() == slug)
}
