//! Recipe files that state a model, variants, strategies and overrides: composes the commands that the recipe's site
//! shows for each variant, strategy and hardware.
//!
//! The order of layers is the site's: base, variant, strategy with its parallel sizes, strategy override, hardware
//! override (the strategy's replaces the recipe's and the variant's), features; the last of equal flags wins.

use std::collections::BTreeMap;

use super::catalog::{Catalog, Hardware};
use super::{Documented, Kind, MAX_DOCUMENTED, Page};
use crate::engine::{self, Engine, Role};
use crate::flags::{FlagValue, Via};
use crate::launch::Launch;
use crate::tree::Tree;
use crate::value::{Arg, Source, Text};

/// The label of a launch whose parallel sizes the recipe does not state, with its value.
const SIZES: &str = "sizes";
const AT_DEPLOYMENT: &str = "chosen at deployment";

/// Whether a documented launch leaves its parallel sizes to whoever deploys it.
pub(crate) fn leaves_sizes(labels: &BTreeMap<String, String>) -> bool {
    labels.get(SIZES).is_some_and(|value| value == AT_DEPLOYMENT)
}

/// Reads a recipe file.
pub(super) fn read(path: &str, tree: &Tree, catalog: &Catalog, page: &mut Page) {
    let reader = Reader { path, tree, catalog };
    for (variant_key, variant) in tree.get("variants").map_or(&[][..], Tree::entries) {
        for (hw_id, hw, verified) in reader.hardware(variant) {
            for strategy in reader.strategies(&hw_id, &hw) {
                for spec in reader.spec_modes(variant_key, &hw_id, &hw) {
                    for role in reader.roles(&strategy) {
                        if page.documented.len() >= MAX_DOCUMENTED {
                            page.notes.push(format!("{path}: more combinations than are kept"));
                            return;
                        }
                        let one = Combination {
                            variant_key,
                            variant,
                            hw_id: &hw_id,
                            hw: &hw,
                            strategy: &strategy,
                            spec: spec.as_ref(),
                            role,
                        };
                        page.documented.push(reader.compose(&one, verified));
                    }
                }
            }
        }
    }
}

struct Reader<'a> {
    path: &'a str,
    tree: &'a Tree,
    catalog: &'a Catalog,
}

struct Combination<'a> {
    variant_key: &'a str,
    variant: &'a Tree,
    hw_id: &'a str,
    hw: &'a Hardware,
    strategy: &'a str,
    spec: Option<&'a (String, Vec<Arg>)>,
    role: Role,
}

impl Reader<'_> {
    fn words(&self, list: Option<&Tree>, out: &mut Vec<Arg>) {
        for item in list.map_or(&[][..], Tree::items) {
            let text = item.text().cloned().unwrap_or_else(|| item.to_text());
            out.push(Arg::new(text, Source::new(self.path, item.line)));
        }
    }

    /// A map keyed by exact hardware, generation, brand or `default`.
    fn keyed<'t>(&self, map: Option<&'t Tree>, hw_id: &str, hw: &Hardware) -> Option<&'t Tree> {
        let map = map?;
        map.get(hw_id)
            .or_else(|| map.get(&hw.generation))
            .or_else(|| map.get(&hw.brand))
            .or_else(|| map.get("default"))
    }

    /// Hardware on which a variant is offered, and whether the recipe calls it verified.
    fn hardware(&self, variant: &Tree) -> Vec<(String, Hardware, Option<bool>)> {
        let stated = self.tree.at(&["meta", "hardware"]);
        let said = |id: &str| stated.and_then(|s| s.get(id)).and_then(Tree::as_str);
        let only: Vec<&str> = variant
            .get("supported_hardware")
            .map_or(&[][..], Tree::items)
            .iter()
            .filter_map(Tree::as_str)
            .collect();
        let precision = variant.get("precision").and_then(Tree::as_str).unwrap_or("");
        let constrained = matches!(precision, "nvfp4" | "fp4") && variant.get("precision_hardware").is_none();
        let known: Vec<(String, Hardware)> = if self.catalog.hardware.is_empty() {
            stated
                .map_or(&[][..], Tree::entries)
                .iter()
                .map(|(id, _)| (id.clone(), Hardware::default()))
                .collect()
        } else {
            self.catalog
                .hardware
                .iter()
                .map(|(id, hw)| (id.clone(), hw.clone()))
                .collect()
        };
        known
            .into_iter()
            .filter(|(id, hw)| {
                said(id) != Some("unsupported")
                    && (!hw.restricted || said(id).is_some())
                    && (only.is_empty() || only.contains(&id.as_str()))
                    && (!constrained || hw.generation.is_empty() || hw.generation == "blackwell")
            })
            .map(|(id, hw)| {
                let verified = said(&id).map(|s| s == "verified");
                (id, hw, verified)
            })
            .collect()
    }

    fn strategies(&self, hw_id: &str, hw: &Hardware) -> Vec<String> {
        let listed: Vec<&str> = self
            .tree
            .get("compatible_strategies")
            .map_or(&[][..], Tree::items)
            .iter()
            .filter_map(Tree::as_str)
            .collect();
        let gates = self.tree.get("strategy_hardware");
        let mut names: Vec<String> = listed.iter().map(|s| (*s).to_owned()).collect();
        for (name, _) in gates.map_or(&[][..], Tree::entries) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names.retain(|name| {
            let gate = self
                .keyed(gates.and_then(|g| g.get(name)), hw_id, hw)
                .and_then(Tree::as_str);
            match gate {
                Some(gate) => gate != "unsupported",
                None => listed.contains(&name.as_str()),
            }
        });
        names
    }

    fn roles(&self, strategy: &str) -> Vec<Role> {
        if strategy.starts_with("pd_cluster") {
            vec![Role::Prefill, Role::Decode]
        } else {
            vec![Role::Aggregated]
        }
    }

    /// Without speculative decoding, and with each method that is offered for the variant and hardware.
    fn spec_modes(&self, variant_key: &str, hw_id: &str, hw: &Hardware) -> Vec<Option<(String, Vec<Arg>)>> {
        let mut out = vec![None];
        let Some(feature) = self.tree.at(&["features", "spec_decoding"]) else {
            return out;
        };
        let args_of = |holder: &Tree| {
            let over = self
                .keyed(holder.get("hardware_overrides"), hw_id, hw)
                .and_then(|o| o.get("args"));
            let mut args = Vec::new();
            self.words(over.or_else(|| holder.get("args")), &mut args);
            args
        };
        match feature.get("modes") {
            Some(modes) => {
                for (name, mode) in modes.entries() {
                    let variants: Vec<&str> = mode
                        .get("variants")
                        .map_or(&[][..], Tree::items)
                        .iter()
                        .filter_map(Tree::as_str)
                        .collect();
                    let here =
                        self.keyed(mode.get("hardware"), hw_id, hw).and_then(Tree::as_str) != Some("unsupported");
                    if here && (variants.is_empty() || variants.contains(&variant_key)) {
                        out.push(Some((name.clone(), args_of(mode))));
                    }
                }
            }
            None => out.push(Some(("on".to_owned(), args_of(feature)))),
        }
        out
    }

    fn compose(&self, c: &Combination<'_>, verified: Option<bool>) -> Documented {
        let file = self.catalog.strategies.get(c.strategy);
        let over = self.tree.at(&["strategy_overrides", c.strategy]);
        let role_over = over.and_then(|o| o.get(c.role.name()));
        let role_file = file.and_then(|f| f.get(c.role.name()));
        let mut args = Vec::new();
        let mut env: BTreeMap<String, (Text, u32)> = BTreeMap::new();
        let mut add_env = |map: Option<&Tree>| {
            for (name, value) in map.map_or(&[][..], Tree::entries) {
                env.insert(name.clone(), (value.text().cloned().unwrap_or_default(), value.line));
            }
        };
        let by_hardware = |holder: Option<&Tree>| -> Option<Tree> {
            let map = holder?.get("hardware_overrides")?;
            map.get(&c.hw.generation).or_else(|| map.get(&c.hw.brand)).cloned()
        };
        self.words(self.tree.at(&["model", "base_args"]), &mut args);
        add_env(self.tree.at(&["model", "base_env"]));
        self.words(c.variant.get("extra_args"), &mut args);
        add_env(c.variant.get("extra_env"));
        self.words(role_file.or(file).and_then(|f| f.get("vllm_args")), &mut args);
        add_env(role_file.or(file).and_then(|f| f.get("env")));
        self.parallel(c, file, role_over, &mut args);
        for holder in [if c.role == Role::Aggregated { over } else { role_over }] {
            for key in ["extra_args", "vllm_args"] {
                self.words(holder.and_then(|h| h.get(key)), &mut args);
            }
            for key in ["extra_env", "env"] {
                add_env(holder.and_then(|h| h.get(key)));
            }
        }
        if c.role != Role::Aggregated {
            add_env(over.and_then(|o| o.get("env")));
        }
        match by_hardware(over) {
            Some(own) => {
                self.words(own.get("extra_args"), &mut args);
                add_env(own.get("extra_env"));
            }
            None => {
                for holder in [by_hardware(Some(self.tree)), by_hardware(Some(c.variant))]
                    .into_iter()
                    .flatten()
                {
                    self.words(holder.get("extra_args"), &mut args);
                    add_env(holder.get("extra_env"));
                }
            }
        }
        let exact = over.and_then(|o| o.at(&["hardware_overrides", c.hw_id]));
        self.words(exact.and_then(|e| e.get("extra_args")), &mut args);
        self.features(c, &mut args);
        if let Some((_, spec)) = c.spec {
            args.extend(spec.iter().cloned());
        }
        self.document(c, args, env, verified)
    }

    /// Features that are on unless a reader turns them off.
    fn features(&self, c: &Combination<'_>, args: &mut Vec<Arg>) {
        let opt_in: Vec<&str> = self
            .tree
            .get("opt_in_features")
            .map_or(&[][..], Tree::items)
            .iter()
            .filter_map(Tree::as_str)
            .collect();
        for (name, feature) in self.tree.get("features").map_or(&[][..], Tree::entries) {
            if name != "spec_decoding" && !opt_in.contains(&name.as_str()) {
                let over = self
                    .keyed(feature.get("hardware_overrides"), c.hw_id, c.hw)
                    .and_then(|o| o.get("args"));
                self.words(over.or_else(|| feature.get("args")), args);
            }
        }
    }

    fn parallel(&self, c: &Combination<'_>, file: Option<&Tree>, role_over: Option<&Tree>, args: &mut Vec<Arg>) {
        let source = Source::new(self.path, c.variant.line);
        let mut put = |flag: &str, value: Text| {
            args.push(Arg::new(Text::known(flag), source.clone()));
            args.push(Arg::new(value, source.clone()));
        };
        let n = |n: u32| Text::known(n.to_string());
        let unknown = || Text::unknown(format!("GPUs of {}", c.hw_id));
        let per_node = c.hw.gpus;
        let name = c.strategy;
        let dep = name.ends_with("dep");
        let tep = name.ends_with("tep");
        if c.role != Role::Aggregated {
            let mode = role_over
                .and_then(|r| r.get("parallelism"))
                .and_then(Tree::as_str)
                .unwrap_or("tp");
            let nodes = role_over.and_then(|r| r.get("nodes"));
            let nodes = nodes
                .and_then(|t| {
                    t.as_u32()
                        .or_else(|| self.keyed(Some(t), c.hw_id, c.hw).and_then(Tree::as_u32))
                })
                .unwrap_or(1);
            let size = per_node.map_or_else(unknown, |g| n(g.saturating_mul(nodes)));
            if mode == "dep" {
                if let Some(tp) = role_over.and_then(|r| r.get("tp")).and_then(Tree::as_u32) {
                    put("--tensor-parallel-size", n(tp));
                }
                put("--data-parallel-size", size);
                args.push(Arg::new(Text::known("--enable-expert-parallel"), source.clone()));
            } else {
                put("--tensor-parallel-size", size);
                if mode == "tep" {
                    args.push(Arg::new(Text::known("--enable-expert-parallel"), source.clone()));
                }
            }
            return;
        }
        let multi = name.starts_with("multi_node");
        let nodes = if multi { self.nodes(c) } else { 1 };
        let total = per_node.map_or_else(unknown, |g| n(g.saturating_mul(nodes)));
        let node = per_node.map_or_else(unknown, n);
        if name.ends_with("tp_pp") {
            put("--tensor-parallel-size", node);
            put("--pipeline-parallel-size", n(nodes));
        } else if name.ends_with("tp_dp") {
            put("--tensor-parallel-size", node);
            put("--data-parallel-size", n(nodes));
        } else if dep {
            put("--data-parallel-size", total);
        } else if !multi && !tep {
            put("--tensor-parallel-size", self.single_node_tp(c).map_or_else(unknown, n));
        } else {
            put("--tensor-parallel-size", total);
        }
        if file.is_none() && (dep || tep) {
            args.push(Arg::new(Text::known("--enable-expert-parallel"), source.clone()));
        }
    }

    fn nodes(&self, c: &Combination<'_>) -> u32 {
        let floor = self.tree.get("strategy_min_gpus").map_or(0, |t| {
            t.as_u32()
                .or_else(|| t.get(c.strategy).and_then(Tree::as_u32))
                .or_else(|| t.get(c.hw_id).and_then(Tree::as_u32))
                .unwrap_or(0)
        });
        floor.div_ceil(c.hw.gpus.unwrap_or(8).max(1)).max(2)
    }

    /// Whether the recipe leaves the parallel sizes to whoever deploys it: the site then shows the machine's GPU count, or
    /// the smallest size that fits.
    fn sizes_are_chosen(&self, c: &Combination<'_>) -> bool {
        let declares = |t: Option<&Tree>| {
            t.is_some_and(|t| {
                t.as_u32().is_some() || self.keyed(Some(t), c.hw_id, c.hw).and_then(Tree::as_u32).is_some()
            })
        };
        c.role == Role::Aggregated
            && !c.strategy.starts_with("multi_node")
            && !declares(c.variant.get("tp"))
            && !declares(self.tree.at(&["strategy_overrides", c.strategy, "tp"]))
    }

    fn single_node_tp(&self, c: &Combination<'_>) -> Option<u32> {
        let gpus = c.hw.gpus?;
        let declared = |t: Option<&Tree>| {
            t.and_then(|t| {
                t.as_u32()
                    .or_else(|| self.keyed(Some(t), c.hw_id, c.hw).and_then(Tree::as_u32))
            })
        };
        if let Some(tp) =
            declared(c.variant.get("tp")).or_else(|| declared(self.tree.at(&["strategy_overrides", c.strategy, "tp"])))
        {
            return Some(tp.min(gpus));
        }
        let need: f64 = c
            .variant
            .get("vram_minimum_gb")
            .and_then(Tree::as_str)
            .and_then(|s| s.parse().ok())
            .unwrap_or(0.0);
        match c.hw.memory_gb {
            Some(memory) if need > 0.0 && need <= memory / f64::from(gpus.max(1)) => Some(1),
            _ => Some(gpus),
        }
    }

    fn document(
        &self,
        c: &Combination<'_>,
        args: Vec<Arg>,
        env: BTreeMap<String, (Text, u32)>,
        verified: Option<bool>,
    ) -> Documented {
        let source = Source::new(self.path, c.variant.line);
        let mut launch = Launch::new(c.role, Engine::Vllm, "vllm serve", source.clone());
        let parsed = engine::parse_flags(Engine::Vllm, &last_wins(args));
        launch.flags = parsed.flags;
        launch.opaque = parsed.opaque;
        let model = c
            .variant
            .get("model_id")
            .or_else(|| self.tree.at(&["model", "model_id"]));
        if let Some((text, line)) = model.and_then(|t| t.text().map(|x| (x.clone(), t.line))) {
            let value = FlagValue {
                value: text,
                spelled: "model_id".into(),
                source: Source::new(self.path, line),
                via: Via::Recipe,
            };
            launch.flags.push("model", value);
        }
        for (name, (text, line)) in env {
            launch.set_env(&name, text, Source::new(self.path, line));
        }
        launch.settle();
        launch.role = c.role;
        let mut labels = BTreeMap::from([
            ("variant".to_owned(), c.variant_key.to_owned()),
            ("strategy".to_owned(), c.strategy.to_owned()),
            ("hardware".to_owned(), c.hw_id.to_owned()),
        ]);
        if let Some(precision) = c.variant.get("precision").and_then(Tree::as_str) {
            labels.insert("precision".into(), precision.to_owned());
        }
        if let Some((name, _)) = c.spec {
            labels.insert("spec_decoding".into(), name.clone());
        }
        if self.sizes_are_chosen(c) {
            labels.insert(SIZES.into(), AT_DEPLOYMENT.into());
        }
        Documented {
            launch,
            hardware: vec![c.hw_id.to_owned()],
            headings: Vec::new(),
            labels,
            kind: Kind::Composed,
            verified,
        }
    }
}

/// Keeps the last of equal flags with its value.
fn last_wins(args: Vec<Arg>) -> Vec<Arg> {
    let mut groups: Vec<Vec<Arg>> = Vec::new();
    for arg in args {
        let is_flag = arg.text.known_prefix().starts_with("--");
        if is_flag || groups.is_empty() {
            let name = arg.text.split_once('=').map_or_else(|| arg.text.clone(), |(n, _)| n);
            groups.retain(|g| {
                let first = g
                    .first()
                    .map(|a| a.text.split_once('=').map_or_else(|| a.text.clone(), |(n, _)| n));
                first.as_ref() != Some(&name)
            });
            groups.push(vec![arg]);
        } else if let Some(group) = groups.last_mut() {
            group.push(arg);
        }
    }
    groups.into_iter().flatten().collect()
}
