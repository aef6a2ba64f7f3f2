//! The tree of one script: statements as bash reads them, words split into literal and expanded parts,
//! each with the place where it is written.

use std::borrow::Cow;
use std::sync::Arc;

/// A place in one script. Lines and columns count from one; columns count bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pos {
    /// Line, from one.
    pub line: u32,
    /// Byte column, from one.
    pub col: u32,
}

/// A list of statements.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) stmts: Vec<Stmt>,
}

/// One statement of a list.
#[derive(Debug)]
pub(crate) struct Stmt {
    pub(crate) at: Pos,
    /// Last line of the statement, here-documents excluded.
    pub(crate) end_line: u32,
    pub(crate) kind: StmtKind,
    pub(crate) background: bool,
}

#[derive(Debug)]
pub(crate) enum StmtKind {
    Simple(Simple),
    Pipeline(Vec<Stmt>),
    Not(Box<Stmt>),
    /// `a && b || c`, flat: the operator stands before its statement.
    AndOr(Box<Stmt>, Vec<(AndOr, Stmt)>),
    Group(Block),
    Subshell(Block),
    If {
        arms: Vec<(Block, Block)>,
        otherwise: Option<Block>,
    },
    Case {
        subject: Word,
        items: Vec<CaseItem>,
    },
    For {
        name: Arc<str>,
        words: Option<Vec<Word>>,
        body: Block,
    },
    /// The three expressions in their order.
    CFor {
        head: Box<[Word; 3]>,
        body: Block,
    },
    While {
        until: bool,
        cond: Block,
        body: Block,
    },
    Function {
        name: Arc<str>,
        body: Arc<Stmt>,
    },
    Test(Box<Cond>),
    Arith(Word),
    /// A compound command with redirections.
    Redirected(Box<Stmt>, Vec<Redir>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AndOr {
    And,
    Or,
}

#[derive(Debug)]
pub(crate) struct CaseItem {
    pub(crate) patterns: Vec<Word>,
    pub(crate) body: Block,
    pub(crate) end: CaseEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaseEnd {
    Break,
    FallThrough,
    TestNext,
}

/// A simple command: assignments, words, redirections, each in the order written.
#[derive(Debug, Default)]
pub(crate) struct Simple {
    pub(crate) assigns: Vec<Assign>,
    pub(crate) words: Vec<Arg>,
    pub(crate) redirs: Vec<Redir>,
}

/// A word of a command, or an assignment given as an argument (`local a=(…)`).
#[derive(Debug)]
pub(crate) enum Arg {
    Word(Word),
    Assign(Box<Assign>),
}

#[derive(Debug)]
pub(crate) struct Assign {
    pub(crate) at: Pos,
    pub(crate) name: Arc<str>,
    pub(crate) index: Option<Word>,
    pub(crate) append: bool,
    pub(crate) value: AssignValue,
}

#[derive(Debug)]
pub(crate) enum AssignValue {
    Scalar(Word),
    Array(Vec<ArrayItem>),
}

#[derive(Debug)]
pub(crate) struct ArrayItem {
    pub(crate) key: Option<Word>,
    pub(crate) value: Word,
}

/// Operators of redirection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectOp {
    /// `<`
    Read,
    /// `>`
    Write,
    /// `>>`
    Append,
    /// `>|`
    Clobber,
    /// `<>`
    ReadWrite,
    /// `>&` (also `2>&1`, `>&-`)
    DupOut,
    /// `<&`
    DupIn,
    /// `&>`
    WriteBoth,
    /// `&>>`
    AppendBoth,
    /// `<<` or `<<-`
    HereDoc,
    /// `<<<`
    HereString,
}

#[derive(Debug)]
pub(crate) struct Redir {
    pub(crate) at: Pos,
    pub(crate) fd: Option<u32>,
    pub(crate) op: RedirectOp,
    /// The target; for a here-document its delimiter.
    pub(crate) target: Word,
    /// Index into the script's table of here-documents.
    pub(crate) heredoc: Option<usize>,
}

/// A here-document: its text, expanded unless the delimiter was quoted.
#[derive(Debug)]
pub(crate) struct HereDoc {
    pub(crate) body: Word,
    pub(crate) raw: Arc<str>,
    pub(crate) quoted: bool,
    pub(crate) first_line: u32,
    pub(crate) last_line: u32,
}

/// A word: parts put together without a break.
#[derive(Debug, Default, Clone)]
pub(crate) struct Word {
    pub(crate) at: Pos,
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) at: Pos,
    pub(crate) quoted: bool,
    pub(crate) kind: PartKind,
}

#[derive(Debug, Clone)]
pub(crate) enum PartKind {
    Lit(Arc<str>),
    Param(Arc<Param>),
    /// `$(…)` or backquotes; the text is for display.
    Command(Arc<Block>, Arc<str>),
    /// `$((…))`: the expression after expansion is arithmetic.
    Arith(Arc<Word>, Arc<str>),
    /// `<(…)` (true) or `>(…)` (false).
    Process(Arc<Block>, bool, Arc<str>),
    /// `~` or `~user` at the start of a word.
    Tilde(Arc<str>),
    /// An unknown piece of text that was given to `eval`.
    Hole(usize),
}

/// One `${…}` or `$x`.
#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) name: ParamName,
    pub(crate) index: Option<Index>,
    /// `${!x}`.
    pub(crate) indirect: bool,
    pub(crate) op: ParamOp,
    /// As written, for display.
    pub(crate) text: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ParamName {
    Var(Arc<str>),
    Positional(usize),
    Special(char),
}

#[derive(Debug)]
pub(crate) enum Index {
    /// `[@]`
    All,
    /// `[*]`
    Star,
    At(Word),
}

#[derive(Debug)]
pub(crate) enum ParamOp {
    None,
    /// `${#x}`
    Length,
    /// `${!x[@]}`
    Keys,
    /// `${!prefix*}`
    Names,
    Default(bool, Word),
    Assign(bool, Word),
    Alternative(bool, Word),
    Error(bool, Word),
    RemovePrefix(bool, Word),
    RemoveSuffix(bool, Word),
    Replace(ReplaceWhere, Word, Word),
    Substring(Word, Option<Word>),
    /// `^`, `^^`, `,`, `,,`: upper, all.
    Case(bool, bool, Word),
    /// `${x@Q}` and its kin.
    Transform(char),
    /// Something this reader does not know.
    Unsupported,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplaceWhere {
    First,
    All,
    Prefix,
    Suffix,
}

/// `[[ … ]]`.
#[derive(Debug)]
pub(crate) enum Cond {
    Unary(Arc<str>, Word),
    Binary(Arc<str>, Word, Word),
    NonEmpty(Word),
    Not(Box<Cond>),
    And(Vec<Cond>),
    Or(Vec<Cond>),
}

impl Word {
    /// The text when the word holds nothing that is expanded.
    pub(crate) fn literal(&self) -> Option<String> {
        let mut out = String::new();
        for part in &self.parts {
            match &part.kind {
                PartKind::Lit(text) => out.push_str(text),
                _ => return None,
            }
        }
        Some(out)
    }

    /// The same without a copy where one part is all of it.
    pub(crate) fn literal_text(&self) -> Option<Cow<'_, str>> {
        match self.parts.as_slice() {
            [
                Part {
                    kind: PartKind::Lit(text),
                    ..
                },
            ] => Some(Cow::Borrowed(text)),
            _ => self.literal().map(Cow::Owned),
        }
    }

    /// The text when the word is one literal that stands for itself as a pattern too.
    pub(crate) fn plain(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [
                Part {
                    kind: PartKind::Lit(text),
                    quoted,
                    ..
                },
            ] if *quoted || !text.contains(['*', '?', '[', '\\', '(']) => Some(text),
            _ => None,
        }
    }

    /// Whether nothing but blanks stands in it.
    pub(crate) fn is_blank(&self) -> bool {
        let blank = |part: &Part| matches!(&part.kind, PartKind::Lit(text) if text.trim().is_empty());
        self.parts.iter().all(blank)
    }

    /// Whether the word is the pattern that everything matches.
    pub(crate) fn is_star(&self) -> bool {
        matches!(self.parts.as_slice(), [Part { kind: PartKind::Lit(text), quoted: false, .. }] if &**text == "*")
    }

    /// Whether any part was quoted.
    pub(crate) fn any_quoted(&self) -> bool {
        self.parts.iter().any(|p| p.quoted)
    }
}
