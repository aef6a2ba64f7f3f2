//! What a command does to the serving stack of an image: a write primitive that meets an engine target (domain guide,
//! section 12.3). What only looks like it (clients, option files, the harness itself) is told apart by its target.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_launch::point::DeriveRules;
use countersign_launch::{Arg, Source, Text, detect};
use countersign_policy::ScriptRules;
use countersign_shell::{RawCommand, RedirectOp, Scanned, ScriptCache, scan_script};

pub use super::patterns::Patterns;
use super::seen::Said;

/// What an act changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The serving stack.
    Engine,
    /// Perhaps the serving stack: only a person can tell.
    Doubtful,
    /// A file that describes a model.
    ModelDescription,
}

/// Something that a script does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    /// What it changes.
    pub kind: Kind,
    /// Where it begins, from 1.
    pub line: u32,
    /// Where it ends.
    pub last_line: u32,
    /// How, for people.
    pub how: &'static str,
    /// The command, shortened.
    pub shown: String,
}

/// Longest command that is shown, in characters.
const SHOWN: usize = 120;

/// Reads scripts by the rules of a policy.
pub struct Reader<'r> {
    rules: &'r ScriptRules,
    patterns: Arc<Patterns>,
}

/// Where the script is when a command runs, as far as its text tells.
#[derive(Default)]
struct Place {
    folder: String,
    clones: Vec<(String, String)>,
    serving: bool,
}

impl<'r> Reader<'r> {
    /// For a policy, and what its rules look for.
    #[must_use]
    pub fn new(rules: &'r ScriptRules, patterns: Arc<Patterns>) -> Self {
        Self { rules, patterns }
    }

    /// Whether a path is a script of a kind that is read.
    #[must_use]
    pub fn is_script(&self, path: &str) -> bool {
        self.is_python(path) || ends(path, &self.rules.shell_endings)
    }

    /// Whether a path is a Python program.
    #[must_use]
    pub fn is_python(&self, path: &str) -> bool {
        ends(path, &self.rules.python_endings)
    }

    /// Whether what a file does is not published.
    #[must_use]
    pub fn is_aside(&self, path: &str) -> bool {
        let part = |parts: &[String]| parts.iter().any(|part| path.contains(part.as_str()));
        part(&self.rules.inert) || part(&self.rules.aside)
    }

    /// Files of the repository that commands start or source.
    #[must_use]
    pub fn calls(&self, path: &str, commands: &[RawCommand], derive: &Option<DeriveRules>) -> BTreeSet<String> {
        let roots: &[String] = derive.as_ref().map_or(&[], |rules| &rules.roots);
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let words = commands.iter().flat_map(|command| command.argv.iter().take(6));
        words
            .flat_map(|word| word.texts.iter())
            .filter(|text| self.is_script(text) && !text.contains(['$', ' ', '*']))
            .flat_map(|text| {
                let inside = roots.iter().find_map(|root| text.strip_prefix(root.as_str()));
                match inside {
                    Some(rest) => vec![tidy(rest.trim_start_matches('/'))],
                    None if text.starts_with('/') => Vec::new(),
                    // Relative to the working directory, or to the script.
                    None => vec![tidy(text), tidy(&format!("{folder}/{text}"))],
                }
            })
            .flatten()
            .collect()
    }

    /// What a shell script says and does: read now, or known from an earlier reading of the same path and text.
    pub fn script(&self, path: &str, text: &Arc<str>, scripts: &ScriptCache) -> Arc<Said> {
        self.patterns.seen.get(path, text, || {
            let Scanned { commands, whole } = scan_script(&scripts.script(path, text));
            Said {
                acts: self.shell(&commands),
                commands,
                whole,
            }
        })
    }

    /// What the commands of a shell script do, in order.
    fn shell(&self, commands: &[RawCommand]) -> Vec<Act> {
        let mut place = Place::default();
        let mut acts: Vec<Act> = Vec::new();
        for command in commands {
            if let Some((kind, how)) = self.command(command, &mut place) {
                // Of a program that is written out here, the line that names its target tells more than its call.
                let names = |line: &&str| {
                    let module = self
                        .patterns
                        .module
                        .as_ref()
                        .is_some_and(|module| module.is_match(line));
                    module || self.rules.model_files.iter().any(|file| line.contains(file.as_str()))
                };
                let telling = command
                    .heredocs
                    .iter()
                    .find_map(|document| document.resolved.lines().find(names));
                let act = Act {
                    kind,
                    line: command.at.line,
                    last_line: command.end_line,
                    how,
                    shown: shorten(telling.unwrap_or(&joined(command))),
                };
                if !acts.contains(&act) {
                    acts.push(act);
                }
            }
        }
        acts
    }

    /// What a Python program does.
    #[must_use]
    pub fn python(&self, text: &str, first_line: u32, lines: usize) -> Vec<Act> {
        let Some((kind, how)) = self.code(text) else {
            return Vec::new();
        };
        let line = text.lines().position(|line| {
            self.patterns
                .module
                .as_ref()
                .is_some_and(|module| module.is_match(line))
        });
        let offset = u32::try_from(line.unwrap_or_default()).unwrap_or_default();
        let shown = text.lines().nth(line.unwrap_or_default()).unwrap_or_default().trim();
        vec![Act {
            kind,
            line: first_line + offset,
            last_line: first_line + u32::try_from(lines).unwrap_or_default(),
            how,
            shown: shorten(shown),
        }]
    }

    fn command(&self, command: &RawCommand, place: &mut Place) -> Option<(Kind, &'static str)> {
        let words: Vec<&str> = command.argv.iter().map(|word| word.texts[0].as_str()).collect();
        let name = words.first().map(|word| base(word)).unwrap_or_default();
        self.follow(command, &words, name, place);
        if let Some(found) = self.documents(command, &words, name) {
            return Some(found);
        }
        if self.patterns.mounts(command) {
            return Some((Kind::Engine, "mounts a file over the image's"));
        }
        if let Some(found) = self.install(&words, place) {
            return Some(found);
        }
        let written = self.written(command, &words, name)?;
        let harness = |text: &str| self.rules.harness.iter().any(|word| text.contains(word.as_str()));
        if written.iter().any(|text| harness(text))
            || (harness(&place.folder) && !written.iter().any(|text| self.is_target(text)))
        {
            return None;
        }
        if written.iter().any(|text| self.is_target(text)) {
            return Some((Kind::Engine, "changes a file of the serving stack"));
        }
        if written.iter().any(|text| {
            self.rules
                .model_files
                .iter()
                .any(|file| base(text.trim_matches(['"', '\''])) == file)
        }) {
            return Some((Kind::ModelDescription, "changes the description of a model"));
        }
        let relative = written.iter().any(|text| !text.starts_with(['/', '$', '~']));
        let applies = applies(&words, name);
        if (relative || applies) && (self.is_target(&place.folder) || self.in_engine_clone(place)) {
            return Some((Kind::Engine, "changes a file of the serving stack"));
        }
        if applies {
            return Some((Kind::Doubtful, "applies a patch"));
        }
        None
    }

    /// Keeps track of where the script is, what it cloned, and whether the server runs.
    fn follow(&self, command: &RawCommand, words: &[&str], name: &str, place: &mut Place) {
        match name {
            "cd" | "pushd" => place.folder = words.get(1).map(|word| (*word).to_owned()).unwrap_or_default(),
            "git" if words.contains(&"clone") => {
                let address = words
                    .iter()
                    .find(|word| word.contains("://") || word.starts_with("git@"));
                if let Some(address) = address {
                    let last = words.last().copied().unwrap_or_default();
                    let own = base(address.trim_end_matches('/')).trim_end_matches(".git").to_owned();
                    let folder = if last == *address { own } else { last.to_owned() };
                    place.clones.push((folder, (*address).to_owned()));
                }
            }
            _ => {}
        }
        if !place.serving && !command.nested {
            let argv: Vec<Arg> = words
                .iter()
                .map(|word| Arg::new(Text::known(*word), Source::new("", 0)))
                .collect();
            place.serving = detect(&argv).is_some();
        }
    }

    /// Texts that the command reads as a program, or writes as one.
    fn documents(&self, command: &RawCommand, words: &[&str], name: &str) -> Option<(Kind, &'static str)> {
        let python = name.starts_with("python") || words.iter().take(4).any(|word| base(word).starts_with("python"));
        let inline = words
            .iter()
            .position(|word| *word == "-c")
            .and_then(|at| words.get(at + 1));
        if python {
            if let Some(found) = command
                .heredocs
                .iter()
                .find_map(|document| self.code(&document.resolved))
            {
                return Some(found);
            }
            if let Some(found) = inline.and_then(|code| self.code(code)) {
                return Some(found);
            }
        }
        // A module that Python loads by itself at every start.
        let hook = |text: &str| {
            matches!(
                base(text.trim_matches(['"', '\''])),
                "sitecustomize.py" | "usercustomize.py"
            )
        };
        let out = command.redirects.iter().filter(|redirect| is_output(redirect.op));
        if out
            .flat_map(|redirect| redirect.target.texts.iter())
            .any(|text| hook(text))
            || (matches!(name, "cp" | "install" | "ln" | "mv" | "tee") && words.iter().skip(1).any(|word| hook(word)))
        {
            let content: String = command
                .heredocs
                .iter()
                .map(|document| document.resolved.as_str())
                .collect();
            let client = self
                .rules
                .client_packages
                .iter()
                .any(|package| content.contains(&package.replace('-', "_")));
            let engine = content
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|word| self.rules.modules.iter().any(|module| module == word));
            return match (engine, client) {
                (true, false) => Some((Kind::Engine, "changes the serving stack while it is loaded")),
                (_, true) => None,
                (false, false) => Some((Kind::Doubtful, "adds code to every Python program")),
            };
        }
        None
    }

    /// Python that writes, and what it writes to.
    fn code(&self, text: &str) -> Option<(Kind, &'static str)> {
        if !self.patterns.writes.as_ref()?.is_match(text) {
            return None;
        }
        if self.patterns.module.as_ref()?.is_match(text) {
            return Some((Kind::Engine, "rewrites a file of the serving stack"));
        }
        let model = self.rules.model_files.iter().any(|file| {
            text.match_indices(file.as_str()).any(|(at, _)| {
                text[..at].ends_with(['"', '\'', '/']) && text[at + file.len()..].starts_with(['"', '\''])
            })
        });
        model.then_some((Kind::ModelDescription, "rewrites the description of a model"))
    }

    /// The files that a command writes to; `None` where it writes none.
    fn written<'c>(&self, command: &'c RawCommand, words: &[&'c str], name: &str) -> Option<Vec<String>> {
        let all = |from: usize| -> Vec<String> {
            command
                .argv
                .iter()
                .skip(from)
                .flat_map(|word| word.texts.iter().cloned())
                .filter(|text| !text.starts_with('-'))
                .collect()
        };
        let flag = |short: char, long: &str| {
            words
                .iter()
                .any(|word| *word == long || (word.starts_with('-') && !word.starts_with("--") && word.contains(short)))
        };
        let mut out = match name {
            "sed" | "gsed" if flag('i', "--in-place") || words.iter().any(|word| word.starts_with("--in-place")) => {
                all(2)
            }
            "perl" if flag('i', "-i") => all(2),
            "patch" => all(1),
            "git" if applies(words, name) => all(1)
                .into_iter()
                .chain(
                    words
                        .iter()
                        .filter(|word| word.starts_with("--directory"))
                        .map(|word| (*word).to_owned()),
                )
                .collect(),
            "cp" | "mv" | "install" | "ln" | "rsync" => command.argv.last()?.texts.clone(),
            "tee" | "truncate" | "rm" => all(1),
            _ => Vec::new(),
        };
        let redirected = command.redirects.iter().filter(|redirect| is_output(redirect.op));
        out.extend(redirected.flat_map(|redirect| redirect.target.texts.iter().cloned()));
        let applies =
            matches!(name, "patch") || (name == "git" && words.iter().any(|word| matches!(*word, "apply" | "am")));
        (!out.is_empty() || applies).then_some(out)
    }

    fn is_target(&self, text: &str) -> bool {
        self.patterns
            .target
            .as_ref()
            .is_some_and(|target| target.is_match(text))
    }

    /// The repository that the current folder is a clone of, if it is the serving stack's.
    fn in_engine_clone(&self, place: &Place) -> bool {
        !place.folder.is_empty()
            && place.clones.iter().any(|(folder, address)| {
                let here = place.folder == *folder || base(place.folder.trim_end_matches('/')) == base(folder);
                here && self.is_engine_repository(address)
            })
    }

    fn is_engine_repository(&self, address: &str) -> bool {
        let address = address.split(['@', '#']).next().unwrap_or(address);
        let last = base(address.trim_end_matches('/')).trim_end_matches(".git");
        let harness = self.rules.harness.iter().any(|word| last.contains(word.as_str()));
        !harness && listed(&self.rules.repositories, last)
    }

    /// Installations: of the serving stack, of what may change it, of anything else.
    fn install(&self, words: &[&str], place: &Place) -> Option<(Kind, &'static str)> {
        let name = words.first().map(|word| base(word)).unwrap_or_default();
        let is_pip = |word: &str| matches!(base(word), "pip" | "pip3") || base(word).starts_with("pip3.");
        let pip = words.iter().position(|word| word.contains("pip") && is_pip(word));
        let own = self.rules.installers.iter().any(|installer| installer == name);
        let from = match pip {
            Some(at) if words.get(at + 1..)?.iter().take(4).any(|word| *word == "install") => {
                at + 2 + words[at + 1..].iter().position(|word| *word == "install")?
            }
            _ if own => 1,
            _ => {
                let builds = matches!(name, "make" | "ninja") && words.contains(&"install");
                let setup = words.iter().any(|word| base(word) == "setup.py")
                    && words.iter().any(|word| matches!(*word, "install" | "develop"));
                return ((builds || setup) && (self.in_engine_clone(place) || self.is_target(&place.folder)))
                    .then_some((Kind::Engine, "builds the serving stack anew"));
            }
        };
        let mut doubtful = false;
        let mut rest = words.get(from..)?.iter().peekable();
        while let Some(word) = rest.next() {
            if matches!(*word, "-e" | "--editable") {
                let folder = rest.peek().copied().copied().unwrap_or(".");
                if self.is_target(folder)
                    || self.names_engine(folder)
                    || self.in_engine_clone(place)
                    || self.is_target(&place.folder)
                {
                    return Some((Kind::Engine, "installs the serving stack anew"));
                }
                doubtful |= !self
                    .rules
                    .harness
                    .iter()
                    .any(|word| folder.contains(word.as_str()) || place.folder.contains(word.as_str()));
                continue;
            }
            if word.starts_with('-') {
                if takes_value(word) {
                    rest.next();
                }
                continue;
            }
            for one in word.split_whitespace() {
                if self.names_engine(one) || (matches!(one, ".") && self.in_engine_clone(place)) {
                    return Some((Kind::Engine, "installs the serving stack anew"));
                }
                doubtful |= listed(&self.rules.doubtful_packages, package(one));
            }
        }
        (doubtful && !place.serving).then_some((Kind::Doubtful, "installs what may change the server"))
    }

    /// Whether something that can be installed is a part of the serving stack: its name, its wheel or its repository.
    fn names_engine(&self, requirement: &str) -> bool {
        let address = requirement
            .rsplit_once('@')
            .filter(|(_, rest)| rest.contains("://"))
            .map_or(requirement, |(_, rest)| rest);
        if requirement.contains("://") {
            let plain = requirement.split("git+").nth(1).unwrap_or(address);
            return self.is_engine_repository(plain) || listed(&self.rules.packages, package(base(plain)));
        }
        let local = requirement.trim_end_matches('/');
        if requirement.ends_with(".whl") || requirement.contains('/') {
            return listed(&self.rules.packages, package(base(local))) || listed(&self.rules.repositories, base(local));
        }
        listed(&self.rules.packages, package(requirement))
    }
}

/// A command as one line: its words as written, each by its first text.
#[must_use]
pub fn joined(command: &RawCommand) -> String {
    let mut out = command.display();
    for redirect in command.redirects.iter().filter(|redirect| is_output(redirect.op)) {
        out.push_str(" > ");
        out.push_str(&redirect.target.texts[0]);
    }
    out
}

/// Whether a command applies a patch or a commit.
fn applies(words: &[&str], name: &str) -> bool {
    name == "patch" || (name == "git" && words.iter().any(|word| matches!(*word, "apply" | "am" | "cherry-pick")))
}

fn is_output(op: RedirectOp) -> bool {
    matches!(
        op,
        RedirectOp::Write
            | RedirectOp::Append
            | RedirectOp::Clobber
            | RedirectOp::ReadWrite
            | RedirectOp::WriteBoth
            | RedirectOp::AppendBoth
    )
}

/// Options of `pip install` that take a value of their own.
fn takes_value(word: &str) -> bool {
    matches!(
        word,
        "-r" | "-c"
            | "-i"
            | "-t"
            | "-f"
            | "--requirement"
            | "--constraint"
            | "--index-url"
            | "--extra-index-url"
            | "--target"
            | "--find-links"
            | "--prefix"
    )
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn ends(path: &str, endings: &[String]) -> bool {
    endings.iter().any(|ending| path.ends_with(ending.as_str()))
}

/// The name of a requirement: what stands before a version, an extra, or the fields of a wheel.
fn package(requirement: &str) -> &str {
    let end = requirement
        .find(['=', '>', '<', '~', '!', '[', ';', '@', ' ', '$'])
        .unwrap_or(requirement.len());
    let name = &requirement[..end];
    match name.strip_suffix(".whl") {
        Some(wheel) => wheel.split('-').next().unwrap_or(wheel),
        None => name,
    }
}

/// Whether a list has a name; case and the kind of dash do not count.
fn listed(list: &[String], name: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let name = plain(name);
    !name.is_empty() && list.iter().any(|known| plain(known) == name)
}

/// A path without `.` and `..`; `None` where it leaves the repository.
fn tidy(path: &str) -> Option<String> {
    let mut out: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                out.pop()?;
            }
            part => out.push(part),
        }
    }
    Some(out.join("/"))
}

fn shorten(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out: String = line.chars().take(SHOWN).collect();
    if out.len() < line.len() {
        out.push('…');
    }
    out
}
