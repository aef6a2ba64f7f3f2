//! What words of a file can stand for when the file's own assignments are put in.

use std::rc::Rc;
use std::sync::Arc;

use super::{Assigned, MAX_DEPTH, MAX_TEXT, MAX_TEXTS, MAX_WORK, RawWord, Scanner, cut};
use crate::eval::paths;
use crate::syntax::ast::{Arg, Block, Param, ParamName, ParamOp, Part, PartKind, Stmt, StmtKind, Word};

impl<'s> Scanner<'s> {
    /// The words one word becomes: an array that the file fills is put in.
    pub(super) fn words(&mut self, word: &'s Word) -> Vec<RawWord> {
        if let [
            Part {
                kind: PartKind::Param(param),
                ..
            },
        ] = word.parts.as_slice()
            && let ParamName::Var(name) = &param.name
            && matches!(param.op, ParamOp::None | ParamOp::Alternative(..))
            && matches!(
                param.index,
                Some(crate::syntax::ast::Index::All | crate::syntax::ast::Index::Star)
            )
        {
            let mut items = Vec::new();
            for assigned in self.assigned.get(&**name).into_iter().flatten() {
                match assigned {
                    Assigned::Array(words) => items.extend(words.iter().copied()),
                    Assigned::Word(word) => items.push(word),
                }
            }
            if !items.is_empty() && items.len() < 2048 {
                return items.into_iter().map(|w| self.word(w)).collect();
            }
        }
        vec![self.word(word)]
    }

    pub(super) fn word(&mut self, word: &Word) -> RawWord {
        let (mut texts, known) = self.resolve(word, 0);
        if texts.is_empty() {
            texts.push(String::new());
        }
        RawWord {
            texts,
            known,
            at: word.at,
        }
    }

    fn resolve(&mut self, word: &Word, depth: usize) -> (Vec<String>, bool) {
        let mut texts = vec![String::new()];
        let mut known = true;
        for part in &word.parts {
            if let PartKind::Lit(text) = &part.kind {
                self.texts += texts.len();
                texts.iter_mut().for_each(|t| t.push_str(text));
            } else {
                let (choices, sure) = self.part(part, depth);
                known &= sure;
                self.texts += texts.len() * choices.len();
                match choices.as_slice() {
                    [one] => texts.iter_mut().for_each(|t| t.push_str(one)),
                    _ => {
                        texts = texts
                            .iter()
                            .flat_map(|t| choices.iter().map(move |c| [t.as_str(), c].concat()))
                            .collect();
                        known &= texts.len() <= MAX_TEXTS;
                        texts.truncate(MAX_TEXTS);
                    }
                }
            }
            if texts.iter().any(|t| t.len() > MAX_TEXT) {
                texts = texts.into_iter().map(cut).collect();
                known = false;
            }
        }
        (texts, known)
    }

    pub(super) fn part(&mut self, part: &Part, depth: usize) -> (Vec<String>, bool) {
        match &part.kind {
            PartKind::Lit(text) => (vec![text.to_string()], true),
            PartKind::Tilde(user) => (vec![format!("~{user}")], true),
            PartKind::Command(body, text) => match self.directory(body) {
                Some(dir) => (vec![dir], true),
                None => (vec![text.to_string()], false),
            },
            PartKind::Process(_, _, text) | PartKind::Arith(_, text) => (vec![text.to_string()], false),
            PartKind::Hole(_) => (vec!["…".into()], false),
            PartKind::Param(param) => self.param(param, depth),
        }
    }

    /// `$(dirname "$0")`, `$(cd "$(dirname "$0")" && pwd)`: where the script lies.
    fn directory(&self, body: &Block) -> Option<String> {
        let stmt = body.stmts.first().filter(|_| body.stmts.len() == 1)?;
        if let StmtKind::AndOr(first, rest) = &stmt.kind
            && let [(_, last)] = rest.as_slice()
            && is_pwd(last)
            && let Some(target) = last_word(first, "cd")
        {
            let mut out = String::new();
            for part in &target.parts {
                match &part.kind {
                    PartKind::Lit(text) => out.push_str(text),
                    PartKind::Command(body, _) => out.push_str(&self.directory(body)?),
                    _ => return None,
                }
            }
            return Some(paths::normal(&out));
        }
        let target = last_word(stmt, "dirname")?;
        let [
            Part {
                kind: PartKind::Param(param),
                ..
            },
        ] = target.parts.as_slice()
        else {
            return None;
        };
        let own = match &param.name {
            ParamName::Positional(0) => true,
            ParamName::Var(name) => &**name == "BASH_SOURCE",
            _ => false,
        };
        own.then(|| paths::dirname(&self.script.path))
    }

    pub(super) fn param(&mut self, param: &Param, depth: usize) -> (Vec<String>, bool) {
        let shown = |p: &Param| match &p.name {
            ParamName::Var(name) if matches!(p.op, ParamOp::None) && p.index.is_none() => format!("${{{name}}}"),
            _ => p.text.to_string(),
        };
        if param.name == ParamName::Positional(0) && matches!(param.op, ParamOp::None) {
            return (vec![self.script.path.to_string()], true);
        }
        let ParamName::Var(name) = &param.name else {
            return (vec![shown(param)], false);
        };
        if depth >= MAX_DEPTH || self.texts > MAX_WORK || param.indirect {
            return (vec![shown(param)], false);
        }
        let plain = matches!(
            param.op,
            ParamOp::None | ParamOp::Default(..) | ParamOp::Assign(..) | ParamOp::Error(..)
        );
        if !plain {
            return (vec![shown(param)], false);
        }
        let standing = self.standing(name, depth);
        let mut texts = standing.words.clone();
        let mut known = standing.known;
        if let ParamOp::Default(_, word) | ParamOp::Assign(_, word) = &param.op {
            let (more, sure) = self.resolve(word, depth + 1);
            known &= sure;
            texts.extend(more);
        }
        texts.extend(standing.arrays.iter().cloned());
        if texts.is_empty() {
            return (vec![shown(param)], false);
        }
        if texts.len() > 1 {
            let mut seen = std::collections::BTreeSet::new();
            let first: Vec<bool> = texts.iter().map(|text| seen.insert(text.as_str())).collect();
            let mut first = first.into_iter();
            texts.retain(|_| first.next().unwrap_or(true));
        }
        known &= texts.len() <= MAX_TEXTS;
        texts.truncate(MAX_TEXTS);
        (texts, known)
    }
}

/// What the assignments to a name can stand for.
pub(super) struct Standing {
    words: Vec<String>,
    arrays: Vec<String>,
    known: bool,
}

impl Scanner<'_> {
    fn standing(&mut self, name: &Arc<str>, depth: usize) -> Rc<Standing> {
        let key = (name.clone(), depth);
        if let Some(known) = self.stands_for.get(&key) {
            return known.clone();
        }
        let mut sources: Vec<&Word> = Vec::new();
        let mut lists = Vec::new();
        for assigned in self.assigned.get(&**name).into_iter().flatten() {
            match assigned {
                Assigned::Word(word) => sources.push(word),
                Assigned::Array(words) => lists.push(words.clone()),
            }
        }
        let mut out = Standing {
            words: Vec::new(),
            arrays: Vec::new(),
            known: true,
        };
        for word in sources {
            let (more, sure) = self.resolve(word, depth + 1);
            out.known &= sure;
            out.words.extend(more);
        }
        for words in lists {
            let row: Vec<String> = words
                .iter()
                .take(256)
                .map(|w| self.resolve(w, depth + 1).0.swap_remove(0))
                .collect();
            out.arrays.push(row.join(" "));
        }
        let out = Rc::new(out);
        self.stands_for.insert(key, out.clone());
        out
    }
}

/// The last word of a command of two or three words with this name.
fn last_word<'s>(stmt: &'s Stmt, name: &str) -> Option<&'s Word> {
    let StmtKind::Simple(simple) = &stmt.kind else {
        return None;
    };
    match simple.words.as_slice() {
        [Arg::Word(first), Arg::Word(last)] | [Arg::Word(first), _, Arg::Word(last)] => {
            (first.literal().as_deref() == Some(name)).then_some(last)
        }
        _ => None,
    }
}

fn is_pwd(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Simple(simple) => {
            matches!(simple.words.first(), Some(Arg::Word(word)) if word.literal().as_deref() == Some("pwd"))
        }
        _ => false,
    }
}
