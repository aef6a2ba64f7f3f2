//! Points that a shell script starts: the evaluator's commands become launches and client calls.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use countersign_matrix as matrix;
use countersign_shell as shell;
use shell::{CommandKind, Evaluation, PieceKind, Span, Value};

use super::answering::{Answering, SHELL_TEXT, Telling};
use super::rules::{AnswerRule, fill, settings, values};
use super::{Missing, PointLaunches, ShellFiles, Tree, join_clients, place};
use crate::client::ClientCall;
use crate::launch::{Launch, OptionsFile, Start};
use crate::shwords;
use crate::value::{Arg, Source, Text};

/// Evaluates a script for a point and adds what it starts.
pub(super) fn from_script(tree: &Tree<'_>, row: &matrix::Row, path: &str, out: &mut PointLaunches) {
    let setup = setup(tree, row, path, &Surroundings::default());
    let answering = Answering {
        rules: &[],
        telling: Some(Telling::new(tree, None)),
    };
    let evaluation = shell::evaluate_with(&ShellFiles(tree.files), tree.scripts, &setup, Some(&answering));
    // Nothing differs where one point is evaluated.
    let _ = add_launches(tree, row, path, &evaluation, (0, None), out);
}

/// What a script starts for each of several points, in their order.
pub(super) fn from_script_for_all(tree: &Tree<'_>, rows: &[&matrix::Row], path: &str) -> Vec<PointLaunches> {
    let plain = Surroundings::default();
    let setups = rows.iter().map(|row| setup(tree, row, path, &plain)).collect();
    let mut out: Vec<PointLaunches> = vec![PointLaunches::default(); rows.len()];
    evaluate_for_all(tree, rows, setups, (&[], None), |at, evaluation, lane| {
        let mut found = PointLaunches::default();
        let told = add_launches(tree, rows[at], path, evaluation, lane, &mut found);
        if told {
            out[at] = found;
        }
        told
    });
    out
}

/// Evaluates a script for several points, given by their rows and setups. Points that differ in nothing but plain texts
/// are evaluated together as far as they go the same way; what is read of it is what evaluating each for itself gives.
/// `read` is called for each point until it says that it could be told apart; the last time for the point alone. Of commands
/// it is given those that may start a server or a client, or the program that is named.
pub(super) fn evaluate_for_all(
    tree: &Tree<'_>,
    rows: &[&matrix::Row],
    setups: Vec<shell::Setup>,
    (answers, program): (&[AnswerRule], Option<&str>),
    mut read: impl FnMut(usize, &Evaluation, Lane<'_>) -> bool,
) {
    let answering = Answering {
        rules: answers,
        telling: Some(Telling::new(tree, program)),
    };
    let files = ShellFiles(tree.files);
    let evaluate = |setup: &shell::Setup| shell::evaluate_with(&files, tree.scripts, setup, Some(&answering));
    let mut done = vec![false; setups.len()];
    let mut together = Together::All;
    for first in 0..setups.len() {
        while !done[first] {
            let fits = |at: &usize| {
                !done[*at]
                    && match together {
                        Together::All => true,
                        Together::Row => rows[*at].place == rows[first].place,
                        Together::None => *at == first,
                    }
                    && alike(&setups[first], &setups[*at])
            };
            let points: Vec<usize> = (first..setups.len()).filter(fits).collect();
            if let [alone] = points.as_slice() {
                // Nothing differs where one point is evaluated.
                let _ = read(*alone, &evaluate(&setups[*alone]), (0, None));
                done[*alone] = true;
                continue;
            }
            let all: Vec<&shell::Setup> = points.iter().map(|at| &setups[*at]).collect();
            shell::evaluate_points(
                &files,
                tree.scripts,
                &joint(&all),
                Some(&answering),
                &mut |evaluation| {
                    let telling = telling(tree, rows[first], evaluation);
                    for lane in &evaluation.holds {
                        if let Some(at) = points.get(*lane) {
                            done[*at] = read(*at, evaluation, (*lane, Some(&telling)));
                        }
                    }
                },
            );
            if !done[first] {
                together = together.fewer();
            }
        }
    }
}

/// Which points are evaluated together.
#[derive(Clone, Copy)]
enum Together {
    /// All of an entry.
    All,
    /// Those of one row of the search space: they differ in their concurrency.
    Row,
    /// None: the script does something with what differs that cannot be done for several points at once.
    None,
}

impl Together {
    fn fewer(self) -> Together {
        match self {
            Together::All => Together::Row,
            Together::Row | Together::None => Together::None,
        }
    }
}

/// Whether two points are given the same variables, with values that are the same or plain texts.
fn alike(a: &shell::Setup, b: &shell::Setup) -> bool {
    let (a, b) = (&a.environment, &b.environment);
    let values = || a.variables.values().zip(b.variables.values());
    a.unknown == b.unknown
        && a.filled == b.filled
        && a.variables.keys().eq(b.variables.keys())
        && values().all(|(x, y)| x == y || (shell::can_differ(x) && shell::can_differ(y)))
}

/// The setup of several points: variables that are not the same for all have a value for each.
fn joint(setups: &[&shell::Setup]) -> shell::Setup {
    let Some(first) = setups.first() else {
        return shell::Setup::default();
    };
    let mut out = (*first).clone();
    out.environment.variables.retain(|name, value| {
        let same = setups
            .iter()
            .all(|setup| setup.environment.variables.get(name) == Some(value));
        if !same {
            let texts = setups.iter().filter_map(|setup| setup.environment.variables.get(name));
            out.environment.each.insert(name.clone(), texts.cloned().collect());
        }
        same
    });
    if out.environment.each.is_empty() {
        // Nothing differs: one variable that no script knows carries the number of points.
        let same = vec!["1".to_owned(); setups.len()];
        out.environment.each.insert(String::new(), same);
    }
    out
}

/// Adds what an evaluation says of one of its points. Gives false, and nothing that counts, where a value that is read
/// is not known only since it differs between points.
fn add_launches(
    tree: &Tree<'_>,
    row: &matrix::Row,
    path: &str,
    evaluation: &Evaluation,
    lane: Lane<'_>,
    out: &mut PointLaunches,
) -> bool {
    let before = out.launches.len();
    let Some(calls) = read(tree, row, evaluation, lane, out) else {
        return false;
    };
    if out.launches.len() == before {
        out.missing.push(Missing::NoServer(path.to_owned()));
    }
    if let Some(client) = join_clients(calls) {
        for launch in &mut out.launches[before..] {
            launch.client = Some(client.clone());
        }
        out.client = Some(client);
    }
    for launch in &mut out.launches[before..] {
        launch.image.get_or_insert_with(|| row.head.image.replace('#', "/"));
    }
    true
}

/// What a script finds besides the environment of its row.
#[derive(Default)]
pub(super) struct Surroundings<'a> {
    /// Exported by the script that started it, with what is known of their values.
    pub(super) inherited: BTreeMap<String, Option<String>>,
    /// Further variables, as templates.
    pub(super) variables: BTreeMap<String, String>,
    /// What programs print.
    pub(super) answers: &'a [AnswerRule],
    /// Files outside of the repository.
    pub(super) files: BTreeMap<String, Arc<str>>,
}

/// Evaluates a script with the environment of a row, and keeps all of its commands.
pub(super) fn evaluate(tree: &Tree<'_>, row: &matrix::Row, path: &str, around: &Surroundings<'_>) -> Evaluation {
    let setup = setup(tree, row, path, around);
    let answers = Answering {
        rules: around.answers,
        telling: None,
    };
    shell::evaluate_with(&ShellFiles(tree.files), tree.scripts, &setup, Some(&answers))
}

/// What the evaluator is given for a script and a row.
pub(super) fn setup(tree: &Tree<'_>, row: &matrix::Row, path: &str, around: &Surroundings<'_>) -> shell::Setup {
    let values = values(row);
    let rules = tree.rules;
    let filled = |templates: &BTreeMap<String, String>| -> Vec<(String, String)> {
        let fill = |(name, template): (&String, &String)| Some((name.clone(), fill(template, &values)?));
        templates.iter().filter_map(fill).collect()
    };
    let mut variables: BTreeMap<String, String> = filled(&rules.variables).into_iter().collect();
    variables.extend(settings(row));
    let mut unknown: BTreeSet<String> = rules.unknown.iter().cloned().collect();
    for (name, value) in &around.inherited {
        match value {
            Some(value) => variables.insert(name.clone(), value.clone()),
            None => {
                unknown.insert(name.clone());
                variables.remove(name)
            }
        };
    }
    variables.extend(filled(&around.variables));
    let known = |name: &String| !variables.contains_key(name);
    let environment = shell::Environment {
        unknown: unknown.into_iter().filter(|n| known(n)).collect(),
        unknown_prefixes: rules.unknown_prefixes.clone(),
        filled: rules.filled.iter().filter(|n| known(n)).cloned().collect(),
        rest: shell::Rest::Unset,
        each: BTreeMap::new(),
        variables,
    };
    shell::Setup {
        script: path.to_owned(),
        roots: rules.roots.clone(),
        environment,
        outside: around.files.clone(),
        ..shell::Setup::default()
    }
}

/// What a script exports at the moment when it starts a program, over all ways that lead there: values that differ, or
/// that are not known, are `None`. Variables that only some ways export are left out.
/// Nothing at all where that is not known only since it differs between points that were evaluated together.
pub(super) fn handed_over(
    evaluation: &Evaluation,
    program: &str,
    lane: usize,
) -> Option<BTreeMap<String, Option<String>>> {
    let text = |value: &Value| value.in_lane(lane).map(|text| text.into_owned());
    let differs = Cell::new(false);
    let starts = |command: &&shell::Command| {
        let name = |w: &shell::Word| {
            differs.set(differs.get() || w.value.differs());
            text(&w.value).is_some_and(|t| t.rsplit('/').next() == Some(program))
        };
        command.argv.iter().take(2).any(name)
    };
    let mut ways = evaluation
        .commands
        .iter()
        .filter(starts)
        .map(shell::Command::environment);
    let Some(first) = ways.next() else {
        return (!differs.get()).then(BTreeMap::new);
    };
    let known = |value: &Value| {
        differs.set(differs.get() || value.differs());
        text(value)
    };
    let mut out: BTreeMap<String, Option<String>> = first
        .iter()
        .map(|(name, value)| (name.to_string(), known(value)))
        .collect();
    for way in &mut ways {
        out.retain(|name, value| {
            let other = way.get(name.as_str());
            if other.and_then(|other| known(other)) != *value {
                *value = None;
            }
            other.is_some()
        });
    }
    drop(ways);
    (!differs.get()).then_some(out)
}

/// One of the points that were evaluated together, and the commands that are to be read; all of them without a list.
pub(super) type Lane<'t> = (usize, Option<&'t [usize]>);

/// The commands that start a client or a server for some point: all others say nothing for any.
fn telling(tree: &Tree<'_>, row: &matrix::Row, evaluation: &Evaluation) -> Vec<usize> {
    let reader = Reader::new(tree, row, evaluation, 0);
    let tells = |command: &shell::Command| {
        let mut values = command
            .argv
            .iter()
            .chain(command.assignments.iter().map(|(_, word)| word));
        if values.any(|word| word.value.varies()) {
            return true;
        }
        let argv = reader.words(command);
        tree.rules.clients.read(&argv).is_some()
            || reader
                .started(argv)
                .iter()
                .any(|argv| crate::engine::detect(argv).is_some())
    };
    let commands = evaluation.commands.iter().enumerate();
    commands
        .filter(|(_, command)| tells(command))
        .map(|(at, _)| at)
        .collect()
}

/// Adds the launches of an evaluation; gives the client calls found. `None` where the points that were evaluated together
/// cannot be told apart in what is read.
pub(super) fn read(
    tree: &Tree<'_>,
    row: &matrix::Row,
    evaluation: &Evaluation,
    (lane, telling): Lane<'_>,
    out: &mut PointLaunches,
) -> Option<Vec<ClientCall>> {
    out.files.extend(evaluation.files.iter().map(|f| f.to_string()));
    if let Some(why) = &evaluation.truncated {
        out.missing.push(Missing::Truncated(why.clone()));
    }
    let notes: BTreeSet<(shell::Note, Span, Cow<'_, str>)> = evaluation
        .diagnostics
        .iter()
        .filter(|d| {
            matches!(
                d.note,
                shell::Note::Syntax(_) | shell::Note::ForeignCode | shell::Note::Bound
            )
        })
        .map(|d| (d.note, d.at, shell::in_lane(&d.message, lane)))
        .collect();
    for (_, at, message) in notes {
        out.notes.push(format!("{}: {message}", evaluation.place(at)));
    }
    let reader = Reader::new(tree, row, evaluation, lane);
    let mut calls = Vec::new();
    for (at, command) in evaluation.commands.iter().enumerate() {
        if telling.is_some_and(|telling| telling.binary_search(&at).is_err()) {
            continue;
        }
        let argv = reader.words(command);
        if let Some(call) = tree.rules.clients.read(&argv) {
            calls.push(call);
        }
        if !matches!(command.kind, CommandKind::External | CommandKind::Builtin) {
            continue;
        }
        for argv in reader.started(argv) {
            if let Some(launch) = reader.launch(command, &argv) {
                add(&mut out.launches, launch);
            }
        }
    }
    (!reader.differs.get()).then_some(calls)
}

/// Adds a launch. One that several ways through a script start alike is one launch, under what all ways share.
fn add(launches: &mut Vec<Launch>, mut launch: Launch) {
    let conditions = std::mem::take(&mut launch.conditions);
    for old in launches.iter_mut() {
        let theirs = std::mem::take(&mut old.conditions);
        if *old == launch {
            old.conditions = theirs.into_iter().filter(|c| conditions.contains(c)).collect();
            return;
        }
        old.conditions = theirs;
    }
    launch.conditions = conditions;
    launches.push(launch);
}

struct Reader<'a> {
    evaluation: &'a Evaluation,
    /// Source of text that the environment gave.
    environment: Source,
    /// Names of the variables that the environment gave.
    given: BTreeSet<Cow<'a, str>>,
    /// The point that is read, of those that were evaluated together.
    lane: usize,
    /// Whether something was read that is not known only since it differs between points.
    differs: Cell<bool>,
}

impl<'a> Reader<'a> {
    fn new(tree: &Tree<'a>, row: &matrix::Row, evaluation: &'a Evaluation, lane: usize) -> Self {
        let rules = tree.rules;
        let names = rules.variables.keys().chain(&rules.unknown).chain(&rules.filled);
        let own = settings(row).into_keys().map(Cow::Owned);
        let given = names.map(|name| Cow::Borrowed(name.as_str())).chain(own).collect();
        Reader {
            evaluation,
            environment: place(row),
            given,
            lane,
            differs: Cell::new(false),
        }
    }

    /// A value as it is for the point that is read.
    fn own<'v>(&self, value: &'v Value) -> Cow<'v, Value> {
        if !value.is_laned() && !value.differs() {
            return Cow::Borrowed(value);
        }
        match value.of_lane(self.lane) {
            Some(own) => Cow::Owned(own),
            None => {
                self.differs.set(true);
                Cow::Borrowed(value)
            }
        }
    }

    fn source(&self, span: Span) -> Source {
        if span.line == 0 {
            self.environment.clone()
        } else {
            Source::new(self.evaluation.path(span), span.line)
        }
    }

    /// The line where a value was decided: the last place written in a file, so that a flag whose value comes from an
    /// array or a branch points there.
    fn place_of(&self, value: &Value, fallback: Span) -> Source {
        let value = self.own(value);
        self.source(value.sources().first().copied().unwrap_or(fallback))
    }

    fn words(&self, command: &shell::Command) -> Vec<Arg> {
        let mut out: Vec<Arg> = Vec::with_capacity(command.argv.len() + command.assignments.len());
        for (name, word) in &command.assignments {
            let mut value = Text::known(format!("{name}="));
            value.push(&self.text(&word.value));
            out.push(Arg::new(value, self.place_of(&word.value, word.span)));
        }
        for word in command.argv.iter() {
            out.push(Arg::new(self.text(&word.value), self.place_of(&word.value, word.span)));
        }
        out
    }

    /// The command itself, or the commands of the text that it gives to a shell (`setsid bash -c "$CMD"`).
    fn started(&self, argv: Vec<Arg>) -> Vec<Vec<Arg>> {
        let known = |i: usize| argv.get(i).and_then(|a| a.text.as_known()).unwrap_or("");
        let shell = (0..argv.len()).find(|&i| {
            matches!(known(i).rsplit('/').next(), Some("bash" | "sh")) && SHELL_TEXT.contains(&known(i + 1))
        });
        match shell.and_then(|i| argv.get(i + 2)) {
            Some(text) => shwords::commands_in(&text.text, &text.source)
                .into_iter()
                .map(|c| c.argv)
                .collect(),
            None => vec![argv],
        }
    }

    fn launch(&self, command: &shell::Command, argv: &[Arg]) -> Option<Launch> {
        // Most commands start no server: look before collecting their environment.
        crate::engine::detect(argv)?;
        let environment: Vec<(String, Text, Source)> = command
            .environment()
            .into_iter()
            // What a script was given is not its statement; what it took from there under another name is.
            .filter(|(name, value)| {
                let value = self.own(value);
                value.pieces().iter().any(|p| p.at.line > 0)
                    || (!self.given.contains(*name) && !value.pieces().is_empty())
            })
            .map(|(name, value)| {
                let source = self.place_of(value, command.span);
                (name.to_string(), self.text(value), source)
            })
            .collect();
        let files = self.files(command);
        let options = |path: &str| {
            files.get(path).cloned().or_else(|| {
                let file = command.file(&Value::text(path, command.span))?;
                Some(self.options_file(file, command.span))
            })
        };
        let mut launch = Launch::from_command(&Start {
            argv,
            environment: &environment,
            options: &options,
        })?;
        let mut seen = BTreeSet::new();
        for literal in command.path.iter().filter(|l| !l.other_side_ends) {
            let text = format!(
                "{}{} [{}]",
                if literal.holds { "" } else { "not " },
                shell::in_lane(&literal.text, self.lane),
                self.evaluation.place(literal.at)
            );
            if seen.insert(text.clone()) {
                launch.conditions.push(text);
            }
        }
        Some(launch)
    }

    /// Files that the command's words name and that the script wrote.
    fn files(&self, command: &shell::Command) -> BTreeMap<String, OptionsFile> {
        command
            .argv
            .iter()
            .filter_map(|word| {
                let file = command.file(&word.value)?;
                Some((self.text(&word.value).to_string(), self.options_file(file, word.span)))
            })
            .collect()
    }

    fn options_file(&self, file: &shell::WrittenFile, fallback: Span) -> OptionsFile {
        let content = self.own(&file.content);
        let first = content
            .pieces()
            .iter()
            .map(|p| p.at)
            .find(|s| s.line > 0)
            .unwrap_or(file.at);
        let at = if first.line > 0 { first } else { fallback };
        OptionsFile {
            contents: self.text(&file.content),
            file: Arc::from(self.evaluation.path(at)),
            first_line: at.line,
        }
    }

    /// A value of the evaluator as text with unknowns. An unknown is named by what it depends on, so that a reader sees
    /// which setting of the point or host decides it; the values it can take are added where they are few.
    fn text(&self, value: &Value) -> Text {
        let mut out = Text::default();
        for piece in self.own(value).pieces() {
            match &piece.kind {
                PieceKind::Text(text) => out.push_known(text),
                PieceKind::Unknown(unknown) => out.push_unknown(unknown_name(unknown, self.lane)),
            }
        }
        out
    }
}

fn unknown_name(unknown: &shell::Unknown, lane: usize) -> String {
    let on: BTreeSet<Cow<'_, str>> = unknown.depends_on.iter().map(|s| shell::in_lane(s, lane)).collect();
    let mut name = if on.is_empty() {
        shell::in_lane(&unknown.name, lane).into_owned()
    } else {
        on.into_iter().collect::<Vec<_>>().join(", ")
    };
    let choices: Option<Vec<String>> = unknown
        .choices
        .iter()
        .map(|c| c.known().map(|t| t.into_owned()))
        .collect();
    if let Some(choices) = choices.filter(|c| (2..=6).contains(&c.len()) && c.iter().all(|t| t.len() <= 60)) {
        name.push_str(&format!(" (one of {})", choices.join(" | ")));
    }
    name
}
