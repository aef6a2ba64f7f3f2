//! Reads one entry of a master config: fields, scenarios, and the rules that look at the entry as a whole (domain guide
//! 3.2, 3.3).

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign_yaml::{Map, Node, Span, Strict};

use crate::entry::{AgenticBlock, Component, Entry, FixedBlock, Head, Own, SearchRow};
use crate::read_row;
use crate::rules::{MatrixRules, ScenarioType};

/// Texts that occur in many rows, kept once.
#[derive(Debug, Default)]
pub(crate) struct Words {
    known: BTreeMap<Box<str>, Arc<str>>,
}

impl Words {
    pub(crate) fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        let shared: Arc<str> = Arc::from(text);
        self.known.insert(Box::from(text), shared.clone());
        shared
    }
}

const ENTRY_FIELDS: [&str; 11] = [
    "image",
    "model",
    "model-prefix",
    "precision",
    "framework",
    "runner",
    "multinode",
    "disagg",
    "router",
    "kv-p2p-transfer",
    "scenarios",
];

/// Reads one entry; problems are collected in `strict`.
pub(crate) struct Reader<'r> {
    pub(crate) strict: Strict,
    pub(crate) rules: &'r MatrixRules,
    pub(crate) words: &'r mut Words,
}

impl Reader<'_> {
    pub(crate) fn entry(&mut self, key: &Arc<str>, file: &Arc<str>, span: Span, raw: Node) -> Option<Entry> {
        let map = self.strict.expect_map(&raw, "", &ENTRY_FIELDS)?;
        let image = self.text(map, span, "image");
        let model = self.text(map, span, "model");
        let model_prefix = self.text(map, span, "model-prefix");
        let precision = self.text(map, span, "precision");
        let framework = self.text(map, span, "framework");
        let runner = self.text(map, span, "runner");
        let multi_node = match self.strict.required(map, span, "", "multinode") {
            Some(node) => self.strict.expect_bool(node, "multinode"),
            None => None,
        };
        let disagg = match map.get("disagg") {
            Some(node) => self.strict.expect_bool(node, "disagg"),
            None => Some(false),
        };
        // Without knowing which schema holds, the rest cannot be judged.
        let (multi_node, disagg) = (multi_node?, disagg?);
        if disagg && !multi_node {
            let at = map.get("disagg").map_or(span, |node| node.span);
            self.strict.problem(
                at,
                "disagg",
                "only a multi-node entry can be disaggregated",
                "remove it",
            );
        }
        let router = match map.get("router") {
            Some(node) if !node.is_null() => self.component(node, "router", true),
            _ => None,
        };
        let kv_p2p_transfer = match map.get("kv-p2p-transfer") {
            Some(node) if !multi_node => {
                self.strict
                    .problem(node.span, "kv-p2p-transfer", "only for multi-node entries", "remove it");
                None
            }
            Some(node) if !node.is_null() => self.non_empty(node, "kv-p2p-transfer"),
            _ => None,
        };
        let (fixed, agentic) = self.scenarios(map, span, multi_node);
        let entry = Entry {
            head: Arc::new(Head {
                key: key.clone(),
                file: file.clone(),
                span,
                image: image?,
                model: model?,
                model_prefix: model_prefix?,
                precision: precision?,
                framework: framework?,
                runner: runner?,
                multi_node,
                disagg,
            }),
            router,
            kv_p2p_transfer,
            fixed,
            agentic,
            raw: Arc::new(raw),
            moved: 0,
        };
        self.check_entry(&entry);
        Some(entry)
    }

    fn scenarios(&mut self, map: &Map, span: Span, multi_node: bool) -> (Vec<FixedBlock>, Vec<AgenticBlock>) {
        let (mut fixed, mut agentic) = (Vec::new(), Vec::new());
        let Some(node) = self.strict.required(map, span, "", "scenarios") else {
            return (fixed, agentic);
        };
        self.strict.enter("scenarios");
        let (fixed_name, agentic_name) = (ScenarioType::Fixed.name(), ScenarioType::Agentic.name());
        if let Some(scenarios) = self.strict.expect_map(node, "", &[fixed_name, agentic_name]) {
            let mut anything = false;
            for (name, list) in scenarios.iter() {
                let scenario = if name.as_str() == Some(fixed_name) {
                    ScenarioType::Fixed
                } else if name.as_str() == Some(agentic_name) {
                    ScenarioType::Agentic
                } else {
                    continue;
                };
                self.strict.enter(scenario.name());
                if let Some(blocks) = self.strict.expect_seq(list, "") {
                    anything |= !blocks.is_empty();
                    for (index, block) in blocks.iter().enumerate() {
                        self.strict.enter(index);
                        match scenario {
                            ScenarioType::Fixed => fixed.extend(self.fixed_block(block, multi_node)),
                            ScenarioType::Agentic => agentic.extend(self.agentic_block(block, multi_node)),
                        }
                        self.strict.leave();
                    }
                }
                self.strict.leave();
            }
            if !anything {
                self.strict.problem(
                    node.span,
                    "",
                    "there is no scenario",
                    format!("add `{fixed_name}` or `{agentic_name}`"),
                );
            }
        }
        self.strict.leave();
        (fixed, agentic)
    }

    fn fixed_block(&mut self, node: &Node, multi_node: bool) -> Option<FixedBlock> {
        let map = self.strict.expect_map(node, "", &["isl", "osl", "search-space"])?;
        let isl = self.required_int(map, node.span, "isl");
        let osl = self.required_int(map, node.span, "osl");
        let rows = self.search_space(map, node.span, ScenarioType::Fixed, multi_node);
        Some(FixedBlock {
            isl: isl?,
            osl: osl?,
            rows: rows?,
        })
    }

    fn agentic_block(&mut self, node: &Node, multi_node: bool) -> Option<AgenticBlock> {
        let map = self
            .strict
            .expect_map(node, "", &["search-space", "dram-utilization"])?;
        let memory_utilization = match map.get("dram-utilization") {
            Some(value) if !value.is_null() => {
                let number = self.strict.expect_number(value, "dram-utilization");
                if number.is_some_and(|number| !(number > 0.0 && number <= 1.0)) {
                    self.strict.problem(
                        value.span,
                        "dram-utilization",
                        "must be above 0 and at most 1",
                        "give the share of the host memory to use",
                    );
                }
                number
            }
            _ => None,
        };
        let rows = self.search_space(map, node.span, ScenarioType::Agentic, multi_node)?;
        let memory = &self.rules.kv_offloading.memory;
        if memory_utilization.is_none()
            && let Some(row) = rows.iter().find(|row| row.kv_offloading.as_deref() == Some(memory))
        {
            self.strict.problem(
                row.span,
                "dram-utilization",
                format!("offloading to `{memory}` needs `dram-utilization`"),
                "add it beside `search-space`",
            );
        }
        Some(AgenticBlock {
            memory_utilization,
            rows,
        })
    }

    fn search_space(
        &mut self,
        map: &Map,
        at: Span,
        scenario: ScenarioType,
        multi_node: bool,
    ) -> Option<Vec<SearchRow>> {
        let node = self.strict.required(map, at, "", "search-space")?;
        self.strict.enter("search-space");
        let mut rows = None;
        if let Some(items) = self.strict.expect_seq(node, "") {
            let mut read = Vec::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                self.strict.enter(index);
                read.extend(read_row::search_row(self, item, scenario, multi_node));
                self.strict.leave();
            }
            rows = Some(read);
        }
        self.strict.leave();
        rows
    }

    /// Rules that look at the entry as a whole (domain guide 3.2).
    fn check_entry(&mut self, entry: &Entry) {
        let head = &entry.head;
        if !entry.agentic.is_empty() && !head.runner.starts_with(&self.rules.cluster_prefix) {
            self.strict.problem(
                head.span,
                "runner",
                format!(
                    "an agentic entry needs a runner that names one cluster, not `{}`",
                    head.runner
                ),
                format!("write `{}<name>`", self.rules.cluster_prefix),
            );
        }
        let own_router = entry.search_rows().find(|(_, row)| matches!(row.router, Own::Value(_)));
        if let (Some(_), Some((_, row))) = (&entry.router, own_router) {
            self.both_levels(row.span, "router");
        }
        let own_transfer = entry
            .search_rows()
            .find(|(_, row)| matches!(row.kv_p2p_transfer, Own::Value(_)));
        if let (Some(_), Some((_, row))) = (&entry.kv_p2p_transfer, own_transfer) {
            self.both_levels(row.span, "kv-p2p-transfer");
        }
        if let (false, Some((_, row))) = (head.multi_node, own_transfer) {
            self.strict
                .problem(row.span, "kv-p2p-transfer", "only for multi-node entries", "remove it");
        }
        let without = entry
            .search_rows()
            .find(|(_, row)| !matches!(row.kv_p2p_transfer, Own::Value(_)));
        let needed = head.disagg && self.rules.components;
        if needed && entry.kv_p2p_transfer.is_none() && (without.is_some() || own_transfer.is_none()) {
            let at = without.map_or(head.span, |(_, row)| row.span);
            self.strict.problem(
                at,
                "kv-p2p-transfer",
                "a disaggregated entry needs `kv-p2p-transfer`",
                "add it to the entry, or to every row",
            );
        }
    }

    fn both_levels(&mut self, at: Span, field: &str) {
        self.strict.problem(
            at,
            field,
            format!("`{field}` is written for the entry and for this row"),
            "write it in one of the two places",
        );
    }

    pub(crate) fn text(&mut self, map: &Map, at: Span, field: &str) -> Option<Arc<str>> {
        let node = self.strict.required(map, at, "", field)?;
        let text = self.strict.expect_str(node, field)?;
        Some(self.words.get(text))
    }

    pub(crate) fn non_empty(&mut self, node: &Node, field: &str) -> Option<Arc<str>> {
        let text = self.strict.expect_str(node, field)?;
        if text.is_empty() {
            self.strict
                .problem(node.span, field, "the text is empty", "write a value");
            return None;
        }
        Some(self.words.get(text))
    }

    pub(crate) fn required_int(&mut self, map: &Map, at: Span, field: &str) -> Option<i64> {
        let node = self.strict.required(map, at, "", field)?;
        self.strict.expect_int(node, field)
    }

    /// A component: `{name, version}`.
    pub(crate) fn component(
        &mut self,
        node: &Node,
        field: &'static str,
        needs_version: bool,
    ) -> Option<Arc<Component>> {
        self.strict.enter(field);
        let component = self.component_fields(node, needs_version);
        self.strict.leave();
        component.map(Arc::new)
    }

    fn component_fields(&mut self, node: &Node, needs_version: bool) -> Option<Component> {
        if let (false, Some(name)) = (self.rules.components, node.as_str()) {
            return Some(Component {
                name: Arc::from(name),
                version: None,
            });
        }
        let map = self.strict.expect_map(node, "", &["name", "version"])?;
        let name = match self.strict.required(map, node.span, "", "name") {
            Some(value) => self.non_empty(value, "name"),
            None => None,
        };
        let version = match map.get("version") {
            None if needs_version => {
                self.strict.required(map, node.span, "", "version")?;
                None
            }
            None => None,
            Some(value) if value.is_null() && !needs_version => Some(None),
            Some(value) => {
                let text = self.non_empty(value, "version")?;
                let forbidden = &self.rules.forbidden_version_prefix;
                if text.starts_with(forbidden.as_str()) {
                    self.strict.problem(
                        value.span,
                        "version",
                        format!("a version may not begin with `{forbidden}`"),
                        "give the component's own release, package version or commit",
                    );
                }
                Some(Some(text))
            }
        };
        Some(Component { name: name?, version })
    }
}
