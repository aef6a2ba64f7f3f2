//! A second opinion: tree-sitter's bash grammar on the same text. Where the two readings differ about which
//! commands there are, a script may be written to be read in two ways; the caller can ask for a person then.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::limits::Limits;
use crate::syntax::ast::{Arg, Block, Cond, Part, PartKind, Stmt, StmtKind, Word};
use crate::syntax::{Pos, Script};

/// A command that only one of the two readings has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Disagreement {
    /// Where the command begins.
    pub at: Pos,
    /// Its first word as written.
    pub word: String,
    /// True when this crate's parser has it and the grammar has not.
    pub ours: bool,
}

/// What the second grammar says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrammarReport {
    /// Places the grammar cannot read.
    pub errors: Vec<Pos>,
    /// True when it was cancelled at its bound, or the file is over the size bound.
    pub cancelled: bool,
    /// Commands that only one reading has.
    pub disagreements: Vec<Disagreement>,
}

/// Entries kept of each list.
const MAX_ENTRIES: usize = 200;

/// Issues of our own parser up to which the grammar is asked.
const MAX_ISSUES: usize = 12;

/// Read a text with tree-sitter's grammar and compare. Not needed for evaluation; meant for changed files.
pub fn check_grammar(text: &str, limits: &Limits) -> GrammarReport {
    let mut report = GrammarReport::default();
    let cancelled = GrammarReport {
        cancelled: true,
        ..GrammarReport::default()
    };
    if text.len() > limits.file_bytes {
        return cancelled;
    }
    // What this crate's own parser gives up on is reported already; the grammar can take minutes on it.
    let script = Script::parse("", text, limits);
    if script.incomplete() || script.issues().len() > MAX_ISSUES {
        return cancelled;
    }
    let mut parser = tree_sitter::Parser::new();
    if parser.set_language(&tree_sitter_bash::LANGUAGE.into()).is_err() {
        return cancelled;
    }
    let mut calls = 0usize;
    let mut progress = |_: &tree_sitter::ParseState| {
        calls += 1;
        if calls > limits.grammar_callbacks {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = tree_sitter::ParseOptions::new().progress_callback(&mut progress);
    let bytes = text.as_bytes();
    let mut input = |offset: usize, _| bytes.get(offset..).unwrap_or_default();
    let Some(tree) = parser.parse_with_options(&mut input, None, Some(options)) else {
        return cancelled;
    };
    let theirs = their_commands(&tree, text, &mut report);
    let mut ours = BTreeMap::new();
    our_block(&script.body, &mut ours, 0);
    for doc in &script.heredocs {
        our_word(&doc.body, &mut ours, 0);
    }
    for (at, word) in &ours {
        if !theirs.contains_key(at) && report.disagreements.len() < MAX_ENTRIES {
            report.disagreements.push(Disagreement {
                at: *at,
                word: word.clone(),
                ours: true,
            });
        }
    }
    for (at, word) in &theirs {
        if !ours.contains_key(at) && report.disagreements.len() < MAX_ENTRIES {
            report.disagreements.push(Disagreement {
                at: *at,
                word: word.clone(),
                ours: false,
            });
        }
    }
    report.disagreements.sort();
    report
}

/// Commands of the tree, walked without recursion.
fn their_commands(tree: &tree_sitter::Tree, text: &str, report: &mut GrammarReport) -> BTreeMap<Pos, String> {
    let mut out = BTreeMap::new();
    let mut errors = BTreeSet::new();
    let mut cursor = tree.walk();
    'walk: loop {
        let node = cursor.node();
        let start = node.start_position();
        let at = Pos {
            line: start.row as u32 + 1,
            col: start.column as u32 + 1,
        };
        if (node.is_error() || node.is_missing()) && errors.len() < MAX_ENTRIES {
            errors.insert(at);
        }
        match node.kind() {
            "command_name" | "declaration_command" | "unset_command" => {
                let word = text.get(node.byte_range()).unwrap_or("");
                out.insert(
                    at,
                    word.split_whitespace().next().unwrap_or("").chars().take(60).collect(),
                );
            }
            "test_command" if text.get(node.byte_range()).is_some_and(|t| !t.starts_with("[[")) => {
                out.insert(at, "[".to_string());
            }
            _ => {}
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                break 'walk;
            }
        }
    }
    report.errors = errors.into_iter().collect();
    out
}

/// Bound on the walk over our own tree, which is itself bounded by [`Limits::nesting`].
const MAX_DEPTH: usize = 400;

fn our_block(block: &Block, out: &mut BTreeMap<Pos, String>, depth: usize) {
    if depth < MAX_DEPTH {
        block.stmts.iter().for_each(|s| our_stmt(s, out, depth + 1));
    }
}

fn our_stmt(stmt: &Stmt, out: &mut BTreeMap<Pos, String>, depth: usize) {
    match &stmt.kind {
        StmtKind::Simple(simple) => {
            if let Some(Arg::Word(first)) = simple.words.first() {
                let word = first.literal().unwrap_or_else(|| "…".into());
                out.insert(first.at, word.chars().take(60).collect());
            }
            for arg in &simple.words {
                match arg {
                    Arg::Word(word) => our_word(word, out, depth),
                    Arg::Assign(assign) => our_assign(assign, out, depth),
                }
            }
            simple.assigns.iter().for_each(|a| our_assign(a, out, depth));
            simple.redirs.iter().for_each(|r| our_word(&r.target, out, depth));
        }
        StmtKind::Pipeline(list) => list.iter().for_each(|s| our_stmt(s, out, depth)),
        StmtKind::Not(inner) => our_stmt(inner, out, depth),
        StmtKind::Redirected(inner, redirs) => {
            our_stmt(inner, out, depth);
            redirs.iter().for_each(|r| our_word(&r.target, out, depth));
        }
        StmtKind::AndOr(first, rest) => {
            our_stmt(first, out, depth);
            rest.iter().for_each(|(_, s)| our_stmt(s, out, depth));
        }
        StmtKind::Group(body) | StmtKind::Subshell(body) => our_block(body, out, depth),
        StmtKind::CFor { head, body } => {
            head.iter().for_each(|w| our_word(w, out, depth));
            our_block(body, out, depth);
        }
        StmtKind::If { arms, otherwise } => {
            for (cond, body) in arms {
                our_block(cond, out, depth);
                our_block(body, out, depth);
            }
            otherwise.iter().for_each(|b| our_block(b, out, depth));
        }
        StmtKind::Case { subject, items } => {
            our_word(subject, out, depth);
            for item in items {
                item.patterns.iter().for_each(|p| our_word(p, out, depth));
                our_block(&item.body, out, depth);
            }
        }
        StmtKind::For { words, body, .. } => {
            words.iter().flatten().for_each(|w| our_word(w, out, depth));
            our_block(body, out, depth);
        }
        StmtKind::While { cond, body, .. } => {
            our_block(cond, out, depth);
            our_block(body, out, depth);
        }
        StmtKind::Function { body, .. } => our_stmt(body, out, depth + 1),
        StmtKind::Test(cond) => our_cond(cond, out, depth),
        StmtKind::Arith(word) => our_word(word, out, depth),
    }
}

fn our_cond(cond: &Cond, out: &mut BTreeMap<Pos, String>, depth: usize) {
    match cond {
        Cond::Unary(_, word) | Cond::NonEmpty(word) => our_word(word, out, depth),
        Cond::Binary(_, a, b) => {
            our_word(a, out, depth);
            our_word(b, out, depth);
        }
        Cond::Not(inner) => our_cond(inner, out, depth),
        Cond::And(list) | Cond::Or(list) => list.iter().for_each(|c| our_cond(c, out, depth)),
    }
}

fn our_assign(assign: &crate::syntax::ast::Assign, out: &mut BTreeMap<Pos, String>, depth: usize) {
    if let Some(index) = &assign.index {
        our_word(index, out, depth);
    }
    match &assign.value {
        crate::syntax::ast::AssignValue::Scalar(word) => our_word(word, out, depth),
        crate::syntax::ast::AssignValue::Array(items) => items.iter().for_each(|i| our_word(&i.value, out, depth)),
    }
}

fn our_word(word: &Word, out: &mut BTreeMap<Pos, String>, depth: usize) {
    use crate::syntax::ast::ParamOp;
    for Part { kind, .. } in &word.parts {
        match kind {
            PartKind::Command(body, _) | PartKind::Process(body, _, _) => our_block(body, out, depth + 1),
            PartKind::Arith(word, _) => our_word(word, out, depth + 1),
            PartKind::Param(param) => match &param.op {
                ParamOp::Default(_, w)
                | ParamOp::Assign(_, w)
                | ParamOp::Alternative(_, w)
                | ParamOp::Error(_, w)
                | ParamOp::RemovePrefix(_, w)
                | ParamOp::RemoveSuffix(_, w)
                | ParamOp::Case(_, _, w) => our_word(w, out, depth + 1),
                ParamOp::Replace(_, a, b) => {
                    our_word(a, out, depth + 1);
                    our_word(b, out, depth + 1);
                }
                ParamOp::Substring(a, b) => {
                    our_word(a, out, depth + 1);
                    b.iter().for_each(|w| our_word(w, out, depth + 1));
                }
                _ => {}
            },
            PartKind::Lit(_) | PartKind::Tilde(_) | PartKind::Hole(_) => {}
        }
    }
}
