//! What the variables of a script are used for. A variable that only decides (it is asked in conditions, killed,
//! waited for, echoed to the log) need not keep worlds apart: its values become a choice, and asking it again asks
//! the choice. Variables whose text can reach a command, a file or another variable keep worlds apart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::syntax::Script;
use crate::syntax::ast::{
    Arg, Assign, AssignValue, Block, Cond, Index, Param, ParamName, ParamOp, PartKind, Redir, Simple, Stmt, StmtKind,
    Word,
};

/// Uses of one script.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// Variables whose text goes somewhere.
    values: BTreeSet<Arc<str>>,
    /// Variables echoed, by function (empty name: outside functions).
    echoed: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Names called, by function.
    calls: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Names called where their output is taken.
    captured: BTreeSet<Arc<str>>,
    /// Functions that call what is not written as a name, or define functions.
    open: BTreeSet<Arc<str>>,
}

/// Where the commands inside here-documents stand, of whichever function.
const HEREDOCS: &str = "<<";

/// The variables that keep worlds apart, over all scripts read.
#[derive(Debug, Default)]
pub(crate) struct Telling {
    names: BTreeSet<Arc<str>>,
}

impl Telling {
    pub(crate) fn of(scripts: &[&Uses]) -> Telling {
        let mut names: BTreeSet<Arc<str>> = scripts.iter().flat_map(|u| u.values.iter().cloned()).collect();
        // Functions whose output is taken, directly or through the function that calls them.
        let mut captured: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut open: Vec<Arc<str>> = scripts.iter().flat_map(|u| u.captured.iter().cloned()).collect();
        while let Some(name) = open.pop() {
            if captured.insert(name.clone()) {
                open.extend(scripts.iter().filter_map(|u| u.calls.get(&name)).flatten().cloned());
            }
        }
        for uses in scripts {
            for (function, echoed) in &uses.echoed {
                if captured.contains(function) {
                    names.extend(echoed.iter().cloned());
                }
            }
        }
        Telling { names }
    }

    pub(crate) fn tells(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

impl Uses {
    pub(crate) fn of(script: &Script) -> Uses {
        let mut walk = Walk {
            uses: Uses::default(),
            function: "".into(),
            captured: false,
        };
        walk.block(&script.body);
        walk.function = HEREDOCS.into();
        for doc in &script.heredocs {
            walk.value(&doc.body);
        }
        walk.uses
    }

    /// All that a function may call (an empty name: what stands outside of functions), by the names that are written there;
    /// nothing where that does not tell.
    pub(crate) fn called(&self, function: &str) -> Option<impl Iterator<Item = &Arc<str>>> {
        let of = [function, HEREDOCS];
        let open = of.iter().any(|function| self.open.contains(*function));
        (!open).then(|| of.into_iter().filter_map(|function| self.calls.get(function)).flatten())
    }
}

/// `trap - EXIT`: a handler that is taken away.
fn resets(simple: &Simple) -> bool {
    matches!(simple.words.get(1), Some(Arg::Word(word)) if word.literal().as_deref() == Some("-"))
}

struct Walk {
    uses: Uses,
    function: Arc<str>,
    captured: bool,
}

impl Walk {
    fn block(&mut self, block: &Block) {
        block.stmts.iter().for_each(|s| self.stmt(s));
    }

    fn capturing(&mut self, run: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.captured, true);
        run(self);
        self.captured = outer;
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Simple(simple) => self.simple(simple),
            StmtKind::Pipeline(stages) => self.capturing(|w| stages.iter().for_each(|s| w.stmt(s))),
            StmtKind::Not(inner) => self.stmt(inner),
            StmtKind::AndOr(first, rest) => {
                self.stmt(first);
                rest.iter().for_each(|(_, s)| self.stmt(s));
            }
            StmtKind::Group(body) | StmtKind::Subshell(body) => self.block(body),
            StmtKind::If { arms, otherwise } => {
                for (cond, body) in arms {
                    self.block(cond);
                    self.block(body);
                }
                otherwise.iter().for_each(|b| self.block(b));
            }
            StmtKind::Case { subject, items } => {
                self.asked(subject);
                for item in items {
                    item.patterns.iter().for_each(|p| self.asked(p));
                    self.block(&item.body);
                }
            }
            StmtKind::For { words, body, .. } => {
                words.iter().flatten().for_each(|w| self.value(w));
                self.block(body);
            }
            StmtKind::CFor { head, body } => {
                head.iter().for_each(|w| self.arithmetic(w));
                self.block(body);
            }
            StmtKind::While { cond, body, .. } => {
                self.block(cond);
                self.block(body);
            }
            StmtKind::Function { name, body } => {
                self.uses.open.insert(self.function.clone());
                let outer = std::mem::replace(&mut self.function, name.clone());
                let captured = std::mem::replace(&mut self.captured, false);
                self.stmt(body);
                self.function = outer;
                self.captured = captured;
            }
            StmtKind::Test(cond) => self.cond(cond),
            StmtKind::Arith(word) => self.arithmetic(word),
            StmtKind::Redirected(inner, redirs) => {
                self.redirs(redirs);
                self.capturing(|w| w.stmt(inner));
            }
        }
    }

    fn redirs(&mut self, redirs: &[Redir]) {
        redirs.iter().for_each(|r| self.value(&r.target));
    }

    fn simple(&mut self, simple: &Simple) {
        simple.assigns.iter().for_each(|a| self.assign(a));
        self.redirs(&simple.redirs);
        let name = match simple.words.first() {
            Some(Arg::Word(word)) => word.literal(),
            _ => None,
        };
        let asks = matches!(
            name.as_deref(),
            Some(
                "test"
                    | "["
                    | "kill"
                    | "wait"
                    | ":"
                    | "true"
                    | "shift"
                    | "exit"
                    | "return"
                    | "unset"
                    | "disown"
                    | "jobs"
            )
        );
        let echoes = matches!(name.as_deref(), Some("echo" | "printf")) && !self.captured && simple.redirs.is_empty();
        if let Some(name) = &name {
            let name: Arc<str> = name.as_str().into();
            if self.captured {
                self.uses.captured.insert(name.clone());
            }
            if !(&*name == "trap" && resets(simple)) {
                self.uses.calls.entry(self.function.clone()).or_default().insert(name);
            }
        } else if !simple.words.is_empty() {
            self.uses.open.insert(self.function.clone());
        }
        for (index, arg) in simple.words.iter().enumerate() {
            match arg {
                Arg::Assign(assign) => self.assign(assign),
                Arg::Word(word) if asks => self.asked(word),
                Arg::Word(word) if echoes => {
                    let mut names = BTreeSet::new();
                    self.names(word, &mut names);
                    self.uses.echoed.entry(self.function.clone()).or_default().extend(names);
                }
                Arg::Word(word) => {
                    if index > 0
                        && let Some(text) = word.literal()
                        && crate::eval::is_name(&text)
                    {
                        // `export NAME`, `declare -p NAME`: a use by name.
                        self.uses.values.insert(text.into());
                    }
                    self.value(word);
                }
            }
        }
    }

    fn assign(&mut self, assign: &Assign) {
        if let Some(index) = &assign.index {
            self.arithmetic(index);
        }
        match &assign.value {
            AssignValue::Scalar(word) => self.value(word),
            AssignValue::Array(items) => {
                for item in items {
                    item.key.iter().for_each(|key| self.asked(key));
                    self.value(&item.value);
                }
            }
        }
    }

    fn cond(&mut self, cond: &Cond) {
        match cond {
            Cond::Unary(_, word) | Cond::NonEmpty(word) => self.asked(word),
            Cond::Binary(_, a, b) => {
                self.asked(a);
                self.asked(b);
            }
            Cond::Not(inner) => self.cond(inner),
            Cond::And(list) | Cond::Or(list) => list.iter().for_each(|c| self.cond(c)),
        }
    }

    /// A word that is only asked: the commands inside it still count.
    fn asked(&mut self, word: &Word) {
        self.names(word, &mut BTreeSet::new());
    }

    fn value(&mut self, word: &Word) {
        let mut names = BTreeSet::new();
        self.names(word, &mut names);
        self.uses.values.extend(names);
    }

    /// Names stand bare in arithmetic.
    fn arithmetic(&mut self, word: &Word) {
        self.value(word);
        for part in &word.parts {
            if let PartKind::Lit(text) = &part.kind {
                let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                self.uses
                    .values
                    .extend(words.filter(|w| crate::eval::is_name(w)).map(Arc::from));
            }
        }
    }

    /// Variables in a word; commands inside it are walked.
    fn names(&mut self, word: &Word, out: &mut BTreeSet<Arc<str>>) {
        for part in &word.parts {
            match &part.kind {
                PartKind::Param(param) => self.param(param, out),
                PartKind::Command(body, _) | PartKind::Process(body, _, _) => self.capturing(|w| w.block(body)),
                PartKind::Arith(word, _) => self.arithmetic(word),
                PartKind::Lit(_) | PartKind::Tilde(_) | PartKind::Hole(_) => {}
            }
        }
    }

    fn param(&mut self, param: &Param, out: &mut BTreeSet<Arc<str>>) {
        if let ParamName::Var(name) = &param.name {
            out.insert(name.clone());
        }
        if let Some(Index::At(word)) = &param.index {
            self.arithmetic(word);
        }
        match &param.op {
            ParamOp::Default(_, w)
            | ParamOp::Alternative(_, w)
            | ParamOp::Error(_, w)
            | ParamOp::RemovePrefix(_, w)
            | ParamOp::RemoveSuffix(_, w)
            | ParamOp::Case(_, _, w) => self.names(w, out),
            ParamOp::Assign(_, w) => self.value(w),
            ParamOp::Replace(_, a, b) => {
                self.names(a, out);
                self.names(b, out);
            }
            ParamOp::Substring(a, b) => {
                self.arithmetic(a);
                b.iter().for_each(|w| self.arithmetic(w));
            }
            ParamOp::None
            | ParamOp::Length
            | ParamOp::Keys
            | ParamOp::Names
            | ParamOp::Transform(_)
            | ParamOp::Unsupported => {}
        }
    }
}
