//! What a master config says, typed (domain guide 3.2-3.4).

use std::fmt;
use std::sync::Arc;

use countersign_yaml::{Node, Span};
use serde::Serialize;

use crate::rules::ScenarioType;

/// One thing wrong with a file or with an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file.
    pub file: Arc<str>,
    /// Line, from 1; 0 where the file as a whole is meant.
    pub line: u32,
    /// Column in characters, from 1; 0 where the file as a whole is meant.
    pub column: u32,
    /// The entry, if it is in one.
    pub entry: Option<Arc<str>>,
    /// Keys and indexes from the entry to the value.
    pub path: String,
    /// What is wrong, one sentence without a full stop.
    pub message: String,
    /// What to do about it, one sentence without a full stop.
    pub remedy: String,
}

impl Problem {
    /// Whether it is the same thing in another revision; lines may have moved.
    #[must_use]
    pub fn same_as(&self, other: &Self) -> bool {
        (&self.file, &self.entry, &self.path, &self.message) == (&other.file, &other.entry, &other.path, &other.message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        f.write_str(": ")?;
        if let Some(entry) = &self.entry {
            write!(f, "{entry}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{}; {}", self.message, self.remedy)
    }
}

fn moved(line: u32, by: i64) -> u32 {
    u32::try_from(i64::from(line) + by).unwrap_or(line)
}

/// What all rows of one entry share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The entry's key.
    pub key: Arc<str>,
    /// The master config it is in.
    pub file: Arc<str>,
    /// Where the key is written.
    pub span: Span,
    /// `image`, as written.
    pub image: Arc<str>,
    /// `model`.
    pub model: Arc<str>,
    /// `model-prefix`.
    pub model_prefix: Arc<str>,
    /// `precision`.
    pub precision: Arc<str>,
    /// `framework`.
    pub framework: Arc<str>,
    /// `runner`.
    pub runner: Arc<str>,
    /// `multinode`.
    pub multi_node: bool,
    /// `disagg`.
    pub disagg: bool,
}

/// One entry of a master config.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What its rows share.
    pub head: Arc<Head>,
    /// `router` of the whole entry.
    pub router: Option<Arc<Component>>,
    /// `kv-p2p-transfer` of the whole entry.
    pub kv_p2p_transfer: Option<Arc<str>>,
    /// `scenarios.fixed-seq-len`.
    pub fixed: Vec<FixedBlock>,
    /// `scenarios.agentic-coding`.
    pub agentic: Vec<AgenticBlock>,
    /// The whole entry as parsed, for comparing revisions. Where it was read first its places were these, see
    /// [`Entry::place`]; byte offsets may be those within the entry.
    pub raw: Arc<Node>,
    /// How many lines further down it stands.
    pub(crate) moved: i64,
}

impl Entry {
    /// Whether the entry has a scenario of this type.
    #[must_use]
    pub fn has(&self, scenario: ScenarioType) -> bool {
        match scenario {
            ScenarioType::Fixed => !self.fixed.is_empty(),
            ScenarioType::Agentic => !self.agentic.is_empty(),
        }
    }

    /// Where something in [`Entry::raw`] is written.
    #[must_use]
    pub fn place(&self, span: Span) -> Span {
        Span {
            line: moved(span.line, self.moved),
            ..span
        }
    }

    /// The place of its key and its value as they were when the YAML was read.
    pub(crate) fn as_read(&self) -> (Span, &Node) {
        let mut span = self.head.span;
        span.line = moved(span.line, -self.moved);
        (span, &self.raw)
    }

    /// The same entry where its key is on another line.
    pub(crate) fn at(self: &Arc<Self>, line: u32) -> Arc<Self> {
        if self.head.span.line == line {
            return Arc::clone(self);
        }
        let mut head = Head::clone(&self.head);
        let further = i64::from(line) - i64::from(head.span.line);
        head.span.line = line;
        let mut out = Self::clone(self);
        out.head = Arc::new(head);
        out.moved += further;
        let fixed = out.fixed.iter_mut().flat_map(|block| &mut block.rows);
        for row in fixed.chain(out.agentic.iter_mut().flat_map(|block| &mut block.rows)) {
            row.span.line = moved(row.span.line, further);
        }
        Arc::new(out)
    }

    /// Every search-space row with its scenario type, in order.
    pub fn search_rows(&self) -> impl Iterator<Item = (ScenarioType, &SearchRow)> {
        let fixed = self
            .fixed
            .iter()
            .flat_map(|block| &block.rows)
            .map(|row| (ScenarioType::Fixed, row));
        let agentic = self
            .agentic
            .iter()
            .flat_map(|block| &block.rows)
            .map(|row| (ScenarioType::Agentic, row));
        fixed.chain(agentic)
    }
}

/// A name and, mostly, a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// `name`.
    pub name: Arc<str>,
    /// `version`: outer `None` where it is not written, inner `None` where it is written as null.
    pub version: Option<Option<Arc<str>>>,
}

/// One element of `fixed-seq-len`.
#[derive(Debug, Clone)]
pub struct FixedBlock {
    /// Input length.
    pub isl: i64,
    /// Output length.
    pub osl: i64,
    /// `search-space`.
    pub rows: Vec<SearchRow>,
}

/// One element of `agentic-coding`.
#[derive(Debug, Clone)]
pub struct AgenticBlock {
    /// `dram-utilization`.
    pub memory_utilization: Option<f64>,
    /// `search-space`.
    pub rows: Vec<SearchRow>,
}

/// One element of a `search-space`.
#[derive(Debug, Clone)]
pub struct SearchRow {
    /// Where it is written.
    pub span: Span,
    /// One machine or two kinds of workers.
    pub shape: Shape,
    /// `spec-decoding`, with the default filled in.
    pub spec_decoding: Arc<str>,
    /// `conc-list`, where written.
    pub conc_list: ConcList,
    /// `conc-start` and `conc-end`, where both are written.
    pub conc_range: Option<(i64, i64)>,
    /// `router`.
    pub router: Own<Arc<Component>>,
    /// `kv-p2p-transfer`.
    pub kv_p2p_transfer: Own<Arc<str>>,
    /// `kv-offloading`, agentic only.
    pub kv_offloading: Option<Arc<str>>,
    /// `kv-offload-backend`, agentic only.
    pub kv_offload_backend: Option<Arc<Component>>,
}

/// `conc-list`. The generator's two modes treat an empty one differently, so it is kept apart from an absent one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConcList {
    /// Not written.
    Absent,
    /// Written as null.
    Null,
    /// Written, possibly empty.
    Values(Vec<i64>),
}

/// A value that a row may take over from the entry. A row that writes null takes over nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Own<T> {
    /// Not written: the entry's value holds.
    Inherit,
    /// Written as null: no value.
    Nothing,
    /// Written.
    Value(T),
}

impl<T: Clone> Own<T> {
    /// The value that holds for the row.
    #[must_use]
    pub fn or(&self, inherited: Option<&T>) -> Option<T> {
        match self {
            Own::Inherit => inherited.cloned(),
            Own::Nothing => None,
            Own::Value(value) => Some(value.clone()),
        }
    }
}

/// The parallelism of a search-space row.
#[derive(Debug, Clone)]
pub enum Shape {
    /// One machine.
    Single(SingleShape),
    /// Prefill and decode workers.
    Multi {
        /// `prefill`.
        prefill: Arc<Worker>,
        /// `decode`.
        decode: Arc<Worker>,
    },
}

/// Parallelism on one machine, with the defaults filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SingleShape {
    /// `tp`.
    pub tp: i64,
    /// `pp`.
    pub pp: i64,
    /// `dcp-size`.
    pub dcp: i64,
    /// `pcp-size`.
    pub pcp: i64,
    /// `ep`.
    pub ep: i64,
    /// `dp-attn`.
    pub dp_attention: bool,
}

/// One kind of workers of a multi-node row, with the defaults filled in where the generator fills them in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// `num-worker`.
    pub count: i64,
    /// `tp`.
    pub tp: i64,
    /// `pp`.
    pub pp: i64,
    /// `dcp-size`.
    pub dcp: i64,
    /// `pcp-size`.
    pub pcp: i64,
    /// `ep`.
    pub ep: i64,
    /// `dp-attn`.
    pub dp_attention: bool,
    /// `hardware`: outer `None` where it is not written, inner `None` where it is written as null.
    pub hardware: Option<Option<Arc<str>>>,
    /// `additional-settings`, likewise.
    pub settings: Option<Option<Vec<String>>>,
}

impl Worker {
    /// The value of `NAME=value` in `additional-settings`; the last one, as for an environment.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&str> {
        let settings = self.settings.as_ref()?.as_ref()?;
        settings
            .iter()
            .rev()
            .find_map(|setting| setting.strip_prefix(name)?.strip_prefix('='))
    }

    /// `hardware`, if it has a value.
    #[must_use]
    pub fn hardware(&self) -> Option<&str> {
        self.hardware.as_ref()?.as_deref()
    }
}
