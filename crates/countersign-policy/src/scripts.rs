//! What changes a serving engine, and what only looks like it (domain guide, section 12).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which scripts are looked at, and what in them counts. Names of modules, packages and repositories are compared without
/// case, `-` as `_`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptRules {
    /// Folders whose changed files are looked at, ending in `/`.
    pub roots: Vec<String>,
    /// Endings of shell scripts.
    pub shell_endings: Vec<String>,
    /// Endings of Python programs.
    pub python_endings: Vec<String>,
    /// Parts of paths whose files nothing runs any more.
    #[serde(default)]
    pub inert: Vec<String>,
    /// Parts of paths whose files measure something else than what is published: what is found there is only noted.
    #[serde(default)]
    pub aside: Vec<String>,
    /// Folders in which the script that a recipe names for setting up may lie, ending in `/`.
    #[serde(default)]
    pub setup_folders: Vec<String>,
    /// Names of such scripts outside of the repository that are known to change no engine.
    #[serde(default)]
    pub setup_fine: Vec<String>,
    /// Parts of names of such scripts that give a patch away.
    #[serde(default)]
    pub setup_patches: Vec<String>,
    /// The setting of a recipe that names such a script.
    #[serde(default)]
    pub setup_setting: Option<String>,
    /// Modules of the serving stack.
    pub modules: Vec<String>,
    /// Folders of the image in which the serving stack lies, without `/` at the end.
    pub folders: Vec<String>,
    /// Packages of the serving stack.
    pub packages: Vec<String>,
    /// Repositories of the serving stack, by the last part of their address.
    pub repositories: Vec<String>,
    /// Packages beside the engine that may change what is served: an installation before the server starts is asked about.
    #[serde(default)]
    pub doubtful_packages: Vec<String>,
    /// Packages and modules of clients and tools: free.
    #[serde(default)]
    pub client_packages: Vec<String>,
    /// Parts of folder and repository names that belong to the harness: what is changed there is no engine.
    #[serde(default)]
    pub harness: Vec<String>,
    /// Functions that install packages as `pip install` does.
    #[serde(default)]
    pub installers: Vec<String>,
    /// Names of files that describe a model.
    #[serde(default)]
    pub model_files: Vec<String>,
}
