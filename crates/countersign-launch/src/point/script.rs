//! Points that a shell script starts: the evaluator's commands become launches and client calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use countersign_matrix as matrix;
use countersign_shell as shell;
use shell::{CommandKind, Evaluation, PieceKind, Span, Value};

use super::rules::{AnswerRule, fill, settings, values};
use super::{Missing, PointLaunches, ShellFiles, Tree, join_clients, place};
use crate::client::ClientCall;
use crate::launch::{Launch, OptionsFile, Start};
use crate::shwords;
use crate::value::{Arg, Source, Text};

/// Evaluates a script for a point and adds what it starts.
pub(super) fn from_script(tree: &Tree<'_>, row: &matrix::Row, path: &str, out: &mut PointLaunches) {
    let evaluation = evaluate(tree, row, path, &Surroundings::default());
    let before = out.launches.len();
    let calls = read(tree, row, &evaluation, out);
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
}

struct Answering<'a>(&'a [AnswerRule]);

impl shell::Answers for Answering<'_> {
    fn answer(&self, command: &shell::Command) -> Option<shell::Answer> {
        let name = command.name()?;
        let rule = self.0.iter().find(|rule| {
            rule.program == name
                && command
                    .argv
                    .iter()
                    .any(|w| w.value.known().is_some_and(|t| t.contains(&rule.contains)))
        })?;
        Some(shell::Answer {
            output: Some(rule.output.clone()),
            status: Some(0),
        })
    }
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

/// Evaluates a script with the environment of a row.
pub(super) fn evaluate(tree: &Tree<'_>, row: &matrix::Row, path: &str, around: &Surroundings<'_>) -> Evaluation {
    let setup = setup(tree, row, path, around);
    let answers = Answering(around.answers);
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
pub(super) fn handed_over(evaluation: &Evaluation, program: &str) -> BTreeMap<String, Option<String>> {
    let starts = |command: &&shell::Command| {
        let name = |w: &shell::Word| w.value.known().is_some_and(|t| t.rsplit('/').next() == Some(program));
        command.argv.iter().take(2).any(name)
    };
    let mut ways = evaluation
        .commands
        .iter()
        .filter(starts)
        .map(shell::Command::environment);
    let Some(first) = ways.next() else {
        return BTreeMap::new();
    };
    let known = |value: &Value| value.known().map(|text| text.into_owned());
    let mut out: BTreeMap<String, Option<String>> = first
        .iter()
        .map(|(name, value)| (name.to_string(), known(value)))
        .collect();
    for way in ways {
        out.retain(|name, value| {
            let other = way.get(name.as_str());
            if other.and_then(known) != *value {
                *value = None;
            }
            other.is_some()
        });
    }
    out
}

/// Adds the launches of an evaluation; gives the client calls found.
pub(super) fn read(
    tree: &Tree<'_>,
    row: &matrix::Row,
    evaluation: &Evaluation,
    out: &mut PointLaunches,
) -> Vec<ClientCall> {
    out.files.extend(evaluation.files.iter().map(|f| f.to_string()));
    if let Some(why) = &evaluation.truncated {
        out.missing.push(Missing::Truncated(why.clone()));
    }
    for note in evaluation.diagnostics.iter().filter(|d| {
        matches!(
            d.note,
            shell::Note::Syntax(_) | shell::Note::ForeignCode | shell::Note::Bound
        )
    }) {
        out.notes
            .push(format!("{}: {}", evaluation.place(note.at), note.message));
    }
    let rules = tree.rules;
    let mut given: BTreeSet<String> = rules
        .variables
        .keys()
        .chain(&rules.unknown)
        .chain(&rules.filled)
        .cloned()
        .collect();
    given.extend(settings(row).into_keys());
    let reader = Reader {
        evaluation,
        environment: place(row),
        given,
    };
    let mut calls = Vec::new();
    for command in &evaluation.commands {
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
    calls
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
    given: BTreeSet<String>,
}

impl Reader<'_> {
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
        self.source(value.sources().first().copied().unwrap_or(fallback))
    }

    fn words(&self, command: &shell::Command) -> Vec<Arg> {
        let mut out: Vec<Arg> = Vec::with_capacity(command.argv.len() + command.assignments.len());
        for (name, word) in &command.assignments {
            let mut value = Text::known(format!("{name}="));
            value.push(&text(&word.value));
            out.push(Arg::new(value, self.place_of(&word.value, word.span)));
        }
        for word in command.argv.iter() {
            out.push(Arg::new(text(&word.value), self.place_of(&word.value, word.span)));
        }
        out
    }

    /// The command itself, or the commands of the text that it gives to a shell (`setsid bash -c "$CMD"`).
    fn started(&self, argv: Vec<Arg>) -> Vec<Vec<Arg>> {
        let known = |i: usize| argv.get(i).and_then(|a| a.text.as_known()).unwrap_or("");
        let shell = (0..argv.len()).find(|&i| {
            matches!(known(i).rsplit('/').next(), Some("bash" | "sh")) && matches!(known(i + 1), "-c" | "-lc" | "-ec")
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
                value.pieces().iter().any(|p| p.at.line > 0)
                    || (!self.given.contains(&**name) && !value.pieces().is_empty())
            })
            .map(|(name, value)| {
                let source = self.place_of(&value, command.span);
                (name.to_string(), text(&value), source)
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
                literal.text,
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
                Some((text(&word.value).to_string(), self.options_file(file, word.span)))
            })
            .collect()
    }

    fn options_file(&self, file: &shell::WrittenFile, fallback: Span) -> OptionsFile {
        let first = file
            .content
            .pieces()
            .iter()
            .map(|p| p.at)
            .find(|s| s.line > 0)
            .unwrap_or(file.at);
        let at = if first.line > 0 { first } else { fallback };
        OptionsFile {
            contents: text(&file.content),
            file: Arc::from(self.evaluation.path(at)),
            first_line: at.line,
        }
    }
}

/// A value of the evaluator as text with unknowns. An unknown is named by what it depends on, so that a reader sees
/// which setting of the point or host decides it; the values it can take are added where they are few.
pub(super) fn text(value: &Value) -> Text {
    let mut out = Text::default();
    for piece in value.pieces() {
        match &piece.kind {
            PieceKind::Text(text) => out.push_known(text),
            PieceKind::Unknown(unknown) => out.push_unknown(unknown_name(unknown)),
        }
    }
    out
}

fn unknown_name(unknown: &shell::Unknown) -> String {
    let on: Vec<&str> = unknown.depends_on.iter().map(|s| &**s).collect();
    let mut name = if on.is_empty() {
        unknown.name.to_string()
    } else {
        on.join(", ")
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
