//! The host-memory budget of an agentic row that offloads its cache (domain guide 4.2): exact arithmetic, because one
//! gigabyte more or less is another recipe.

use crate::entry::{AgenticBlock, Entry, SearchRow, Shape, Worker};
use crate::read::Configs;
use crate::rules::MatrixRules;

const BYTES_PER_MIB: i128 = 1024 * 1024;
const BYTES_PER_GB: i128 = 1_000_000_000;

type Refusal = (String, String);

/// The budget in GB; 0 where nothing is offloaded to memory.
pub(crate) fn budget_gb(
    configs: &Configs,
    rules: &MatrixRules,
    entry: &Entry,
    block: &AgenticBlock,
    row: &SearchRow,
) -> Result<i64, Refusal> {
    if row.kv_offloading.as_deref() != Some(rules.kv_offloading.memory.as_str()) {
        return Ok(0);
    }
    let runner = &*entry.head.runner;
    let Some(hardware) = configs.runners.hardware.get(runner) else {
        return Err((
            format!("the runner `{runner}` has no hardware facts"),
            "add it under `hardware` in the runners file".to_owned(),
        ));
    };
    let Some(utilization) = block.memory_utilization else {
        return Err((
            "offloading needs `dram-utilization`".to_owned(),
            "add it beside `search-space`".to_owned(),
        ));
    };
    let per_node = hardware.gpus_per_node;
    let gpus = match &row.shape {
        Shape::Single(shape) => {
            let gpus = product(shape.tp, shape.pp, shape.pcp)?;
            if gpus > per_node {
                return Err((
                    format!("the row needs {gpus} GPUs and a node of `{runner}` has {per_node}"),
                    "reduce the parallelism".to_owned(),
                ));
            }
            gpus
        }
        Shape::Multi { prefill, .. } => gpus_on_one_node(prefill, per_node)?,
    };
    let memory = hardware.memory_mib.min(rules.agentic.memory_cap_mib);
    share(memory, utilization, gpus, per_node).ok_or_else(|| {
        (
            "the memory budget cannot be computed from these numbers".to_owned(),
            "correct the row's numbers".to_owned(),
        )
    })
}

fn product(tp: i64, pp: i64, pcp: i64) -> Result<i64, Refusal> {
    tp.checked_mul(pp)
        .and_then(|gpus| gpus.checked_mul(pcp))
        .ok_or_else(|| {
            (
                "the number of GPUs is too large".to_owned(),
                "correct `tp`, `pp` and `pcp-size`".to_owned(),
            )
        })
}

/// A replica larger than a node must fill whole nodes, a smaller one must divide a node.
fn gpus_on_one_node(worker: &Worker, per_node: i64) -> Result<i64, Refusal> {
    let replica = product(worker.tp, worker.pp, worker.pcp)?;
    let refuse = |message: String| (message, "choose a parallelism that tiles a node".to_owned());
    if replica > per_node {
        if replica % per_node != 0 {
            return Err(refuse(format!(
                "a worker of {replica} GPUs does not fill nodes of {per_node}"
            )));
        }
        return Ok(per_node);
    }
    if replica == 0 || per_node % replica != 0 {
        return Err(refuse(format!(
            "a worker of {replica} GPUs does not divide a node of {per_node}"
        )));
    }
    Ok(replica)
}

/// `memory × 1 MiB × utilization × gpus / per_node` in whole GB, cut towards zero; `None` where it is negative or too
/// large. The utilization counts as the decimal number that is written, not as its binary approximation.
fn share(memory_mib: i64, utilization: f64, gpus: i64, per_node: i64) -> Option<i64> {
    let (digits, exponent) = decimal(utilization)?;
    let scale = 10_i128.checked_pow(exponent)?;
    let bytes = i128::from(memory_mib)
        .checked_mul(BYTES_PER_MIB)?
        .checked_mul(digits)?
        .checked_mul(i128::from(gpus))?;
    let whole = bytes / i128::from(per_node).checked_mul(scale)?.checked_mul(BYTES_PER_GB)?;
    i64::try_from(whole).ok().filter(|gb| *gb >= 0)
}

/// A number in (0, 1] as `digits / 10^exponent`, from its shortest decimal form.
fn decimal(number: f64) -> Option<(i128, u32)> {
    let text = format!("{number:e}");
    let (mantissa, power) = text.split_once('e')?;
    let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let digits: i128 = mantissa.replace('.', "").parse().ok()?;
    let exponent = i64::try_from(fraction).ok()? - power.parse::<i64>().ok()?;
    Some((digits, u32::try_from(exponent).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact() {
        // 2,063,837 MiB = 2,164,090,,, bytes: 2063837 * 1048576 * 0.8 = 1.73127... TB; half a node.
        assert_eq!(share(1_000_000, 0.8, 8, 8), Some(838));
        assert_eq!(share(1_000_000, 0.8, 4, 8), Some(419));
        // 2,000,000,000 MiB-bytes exactly at a gigabyte border: 0.1 must not become 0.0999…
        assert_eq!(share(9_765_625, 0.1, 1, 1), Some(1024));
        assert_eq!(share(1, 1.0, 1, 1), Some(0));
        assert_eq!(share(1_000_000, 0.8, -8, 8), None);
        assert_eq!(share(i64::MAX, 1.0, i64::MAX, 1), None);
    }

    #[test]
    fn decimals_come_from_what_is_written() {
        assert_eq!(decimal(0.8), Some((8, 1)));
        assert_eq!(decimal(1.0), Some((1, 0)));
        assert_eq!(decimal(0.125), Some((125, 3)));
        assert_eq!(decimal(1e-5), Some((1, 5)));
    }
}
