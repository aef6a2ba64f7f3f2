//! What makes a row the same benchmark in two revisions, and which rows lie on one curve.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::entry::{SingleShape, Worker};
use crate::row::{Conc, Row, RowShape, Work};
use crate::rules::Purpose;

/// Identifies a row across revisions: what a person would call the same benchmark point although its image, its
/// settings or its model have changed. Several rows may share one identity, where only their settings differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Point {
    /// The entry's key.
    pub entry: Arc<str>,
    /// Throughput or accuracy.
    pub purpose: Purpose,
    /// Input and output length; `None` for trace replay.
    pub lengths: Option<(i64, i64)>,
    /// The parallelism.
    pub shape: PointShape,
    /// `spec-decoding`.
    pub spec_decoding: Arc<str>,
    /// `kv-offloading` and the backend's name; `None` for fixed lengths.
    pub offload: Option<(Arc<str>, Option<Arc<str>>)>,
    /// The concurrency, where the job has one. A fixed-length multi-node job runs a list, which may change without
    /// making it another job: `None`.
    pub conc: Option<i64>,
}

/// The parallelism, without what only describes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum PointShape {
    /// `tp`, `pp`, `dcp-size`, `pcp-size`, `ep`, `dp-attn`.
    Single(i64, i64, i64, i64, i64, bool),
    /// `num-worker` and the same six, for prefill and decode.
    Multi(
        (i64, i64, i64, i64, i64, i64, bool),
        (i64, i64, i64, i64, i64, i64, bool),
    ),
}

impl PointShape {
    fn single(shape: &SingleShape) -> Self {
        PointShape::Single(shape.tp, shape.pp, shape.dcp, shape.pcp, shape.ep, shape.dp_attention)
    }

    fn multi(prefill: &Worker, decode: &Worker) -> Self {
        let degrees = |worker: &Worker| {
            (
                worker.count,
                worker.tp,
                worker.pp,
                worker.dcp,
                worker.pcp,
                worker.ep,
                worker.dp_attention,
            )
        };
        PointShape::Multi(degrees(prefill), degrees(decode))
    }
}

impl fmt::Display for PointShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn degrees(f: &mut fmt::Formatter<'_>, tp: i64, others: [(&str, i64); 4], dp_attention: bool) -> fmt::Result {
            write!(f, "tp{tp}")?;
            for (name, degree) in others.into_iter().filter(|(_, degree)| *degree != 1) {
                write!(f, " {name}{degree}")?;
            }
            if dp_attention { f.write_str(" dp-attn") } else { Ok(()) }
        }
        match *self {
            PointShape::Single(tp, pp, dcp, pcp, ep, dp_attention) => degrees(
                f,
                tp,
                [("pp", pp), ("dcp", dcp), ("pcp", pcp), ("ep", ep)],
                dp_attention,
            ),
            PointShape::Multi(prefill, decode) => {
                for (index, (count, tp, pp, dcp, pcp, ep, dp_attention)) in [prefill, decode].into_iter().enumerate() {
                    if index > 0 {
                        f.write_str(" + ")?;
                    }
                    write!(f, "{count}{}(", if index == 0 { "P" } else { "D" })?;
                    degrees(
                        f,
                        tp,
                        [("pp", pp), ("dcp", dcp), ("pcp", pcp), ("ep", ep)],
                        dp_attention,
                    )?;
                    f.write_str(")")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.entry)?;
        match self.lengths {
            Some((isl, osl)) => write!(f, "{isl}/{osl}")?,
            None => f.write_str("agentic")?,
        }
        write!(f, " {} spec={}", self.shape, self.spec_decoding)?;
        if let Some((kind, backend)) = &self.offload {
            write!(f, " offload={kind}")?;
            if let Some(backend) = backend {
                write!(f, "({backend})")?;
            }
        }
        if let Some(conc) = self.conc {
            write!(f, " c{conc}")?;
        }
        if self.purpose == Purpose::Eval {
            f.write_str(" eval")
        } else {
            Ok(())
        }
    }
}

impl Row {
    /// The row's identity across revisions.
    #[must_use]
    pub fn point(&self) -> Point {
        let shape = match &self.shape {
            RowShape::Single(shape) => PointShape::single(shape),
            RowShape::Multi { prefill, decode } => PointShape::multi(prefill, decode),
        };
        let offload = match &self.work {
            Work::Fixed { .. } => None,
            Work::Agentic {
                kv_offloading, backend, ..
            } => Some((
                kv_offloading.clone(),
                backend.as_ref().map(|backend| backend.name.clone()),
            )),
        };
        let conc = match (&self.conc, &self.work) {
            (Conc::One(conc), _) => Some(*conc),
            (Conc::Many(concs), Work::Agentic { .. }) if concs.len() == 1 => concs.first().copied(),
            (Conc::Many(_), _) => None,
        };
        Point {
            entry: self.head.key.clone(),
            purpose: self.purpose(),
            lengths: self.lengths(),
            shape,
            spec_decoding: self.spec_decoding.clone(),
            offload,
            conc,
        }
    }
}

/// All rows that share everything but the concurrency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Curve {
    /// The fingerprint that its rows share.
    pub fingerprint: String,
    /// The entry's key. Two entries with equal recipes are two curves here.
    pub entry: Arc<str>,
    /// Indexes of its rows.
    pub rows: Vec<usize>,
    /// All its concurrencies, sorted, without repetition.
    pub concurrencies: Vec<i64>,
}

/// The curves of some rows, in the order in which they first occur.
#[must_use]
pub fn curves(rows: &[Row]) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    let mut known: HashMap<(Arc<str>, String), usize> = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        let fingerprint = row.fingerprint();
        let at = *known
            .entry((row.head.key.clone(), fingerprint.clone()))
            .or_insert_with(|| {
                curves.push(Curve {
                    fingerprint,
                    entry: row.head.key.clone(),
                    rows: Vec::new(),
                    concurrencies: Vec::new(),
                });
                curves.len() - 1
            });
        curves[at].rows.push(index);
        curves[at].concurrencies.extend(row.conc.values());
    }
    for curve in &mut curves {
        curve.concurrencies.sort_unstable();
        curve.concurrencies.dedup();
    }
    curves
}
