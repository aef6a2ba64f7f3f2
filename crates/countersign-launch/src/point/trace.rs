//! Everything that a point's script or recipe says, as text that can be compared: two points with equal traces do the same,
//! whatever stands in the branches that neither takes. Places are kept for people and do not count.

use countersign_matrix as matrix;
use countersign_shell as shell;
use serde::Serialize;

use super::{Tree, narrow, script};
use crate::recipe;
use crate::value::Source;

/// Most statements of one point that are kept.
const MOST: usize = 20_000;

/// One command, written file or recipe value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// What is said.
    pub text: String,
    /// Where.
    pub source: Source,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// In the order in which they would be carried out.
    pub statements: Vec<Statement>,
    /// The scripts and recipes that were read.
    pub files: Vec<String>,
    /// Why it is not all that the point does: equal traces then prove nothing.
    pub open: Vec<String>,
}

impl Trace {
    /// The first place where another trace differs: ours, theirs. `None` where both say the same.
    pub fn difference<'a>(&'a self, other: &'a Trace) -> Option<(Option<&'a Statement>, Option<&'a Statement>)> {
        let (mine, theirs) = (&self.statements, &other.statements);
        (0..mine.len().max(theirs.len()))
            .map(|at| (mine.get(at), theirs.get(at)))
            .find(|(a, b)| a.map(|s| &s.text) != b.map(|s| &s.text))
    }

    fn push(&mut self, text: String, source: Source) {
        if self.statements.len() < MOST {
            self.statements.push(Statement { text, source });
        } else if self.statements.len() == MOST {
            self.open.push("more statements than are kept".into());
        }
    }
}

/// Traces a point.
pub fn trace(tree: &Tree<'_>, entry: &matrix::Entry, row: &matrix::Row) -> Trace {
    let mut out = Trace::default();
    let resolution = matrix::resolve(&narrow(entry, row), tree.runners, tree.files, tree.layout, tree.matrix);
    if tree
        .rules
        .tables
        .iter()
        .any(|t| t.frameworks.iter().any(|f| *f == *row.head.framework))
    {
        out.open
            .push("its servers are described by a table that a wrapper reads".into());
    }
    for used in &resolution.recipes {
        let text = used
            .path
            .as_deref()
            .filter(|_| used.exists)
            .and_then(|path| tree.files.read(path));
        let (Some(path), Some(text)) = (&used.path, text) else {
            out.open.push(format!("recipe {} is not in the repository", used.name));
            continue;
        };
        match recipe::statements(path, &text, used.selector.as_deref()) {
            Ok(statements) => {
                out.files.push(path.clone());
                statements.into_iter().for_each(|(text, source)| out.push(text, source));
            }
            Err(error) => out.open.push(error.to_string()),
        }
    }
    for file in &resolution.scripts {
        if file.exists {
            commands(tree, row, &file.path, &mut out);
        } else {
            out.open.push(format!("script {} is not in the repository", file.path));
        }
    }
    if resolution.recipes.is_empty() && resolution.scripts.is_empty() {
        out.open
            .push("no rule leads from this entry to a script or recipe".into());
    }
    out
}

fn commands(tree: &Tree<'_>, row: &matrix::Row, path: &str, out: &mut Trace) {
    let evaluation = script::evaluate(tree, row, path, &script::Surroundings::default());
    out.files.extend(evaluation.files.iter().map(|file| file.to_string()));
    out.open.extend(evaluation.truncated.clone());
    for note in &evaluation.diagnostics {
        let hides = matches!(
            note.note,
            shell::Note::Syntax(_)
                | shell::Note::NotInTree
                | shell::Note::ForeignCode
                | shell::Note::Bound
                | shell::Note::Unsupported
        );
        if hides {
            out.open
                .push(format!("{}: {}", evaluation.place(note.at), note.message));
        }
    }
    for command in &evaluation.commands {
        // What a function or script does follows as commands of its own.
        if matches!(command.kind, shell::CommandKind::Function | shell::CommandKind::Script) {
            continue;
        }
        let source = if command.span.line == 0 {
            Source::new(row.head.file.clone(), row.place.line)
        } else {
            Source::new(evaluation.path(command.span), command.span.line)
        };
        out.push(said(command), source);
    }
    for end in &evaluation.ends {
        out.push(
            format!("ends with {:?}{}", end.status, conditions(&end.path)),
            Source::new(evaluation.path(end.at), end.at.line),
        );
    }
}

fn said(command: &shell::Command) -> String {
    let mut text = command.display();
    for redirect in &command.redirects {
        text.push_str(&format!(
            " {:?}{:?} {}",
            redirect.fd,
            redirect.op,
            redirect.target.value.display()
        ));
        if let Some(body) = &redirect.text {
            text.push_str(&format!(" << {}", body.display()));
        }
    }
    if let Some(stdin) = &command.stdin {
        text.push_str(&format!(" <<< {}", stdin.display()));
    }
    if command.background {
        text.push_str(" &");
    }
    for (name, value) in command.environment() {
        text.push_str(&format!("\n  {name}={}", value.display()));
    }
    text.push_str(&format!("\n  in {}", command.cwd.display()));
    text.push_str(&conditions(&command.path));
    text
}

fn conditions(path: &[std::sync::Arc<shell::Literal>]) -> String {
    path.iter()
        .map(|literal| format!("\n  if {}{}", if literal.holds { "" } else { "not " }, literal.text))
        .collect()
}
