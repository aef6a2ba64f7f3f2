//! Command generators of documentation pages: runs them for every combination of their options.
//!
//! Two shapes occur: a component or configuration object with `options` and a function that builds the command, and a
//! plain list of `cells`, each with what it matches, its environment and its flags.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::ast;
use super::eval::{Eval, Machine, Scope};
use super::value::{MARK, MARK_END, Members, Val, set_member};

/// Steps for the whole of one file.
const STEPS: u64 = 6_000_000;
/// Most combinations that are tried.
const MAX_COMBINATIONS: usize = 2_048;
/// Most commands kept from one file.
const MAX_COMMANDS: usize = 3_000;

/// One command that a page can show.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Generated {
    /// Shell text; unknowns are marked as in [`super::value`].
    pub(crate) command: String,
    /// The options under which it is shown.
    pub(crate) labels: BTreeMap<String, String>,
    /// Line of the generator or cell.
    pub(crate) line: u32,
    /// Whether the page calls it verified, where it says.
    pub(crate) verified: Option<bool>,
    /// Whether it is a cell of a list rather than the result of a function.
    pub(crate) cell: bool,
}

/// What a snippet file holds.
#[derive(Debug, Default)]
pub(crate) struct Snippet {
    pub(crate) commands: Vec<Generated>,
    pub(crate) notes: Vec<String>,
}

/// Reads a snippet file.
pub(crate) fn read_snippet(text: &str) -> Snippet {
    let clean = text.replace([MARK, MARK_END], "");
    let mut out = Snippet::default();
    let Some(program) = ast::parse(&clean) else {
        out.notes.push("not readable as JavaScript".into());
        return out;
    };
    let mut machine = Machine::new(STEPS);
    if machine.run(&program).is_err() {
        out.notes.push("evaluation was stopped at its limit".into());
    }
    for (name, value) in machine.variables(0) {
        if let Some(cells) = value.member("cells").and_then(|c| c.items()) {
            read_cells(&value, &cells, &mut out);
        }
        if find_generator(&value).is_some() {
            generate(&mut machine, std::slice::from_ref(&value), &mut out);
        }
        if let Val::Func(closure) = &value
            && name.starts_with(|c: char| c.is_ascii_uppercase())
        {
            let mark = machine.mark();
            let props = match machine.obj(Vec::new()) {
                Ok(props) => props,
                Err(_) => break,
            };
            machine.states.clear();
            // Even a run that stops early may have defined the generator.
            let scope: Option<Scope> = match machine.call_closure(closure, Val::Undefined, vec![props]) {
                Ok((_, scope)) => Some(scope),
                Err(_) => Some(mark.0),
            };
            let locals: Vec<Val> = scope.map_or_else(Vec::new, |s| vec![scope_object(&mut machine, s)]);
            generate(&mut machine, &locals, &mut out);
            drop(locals);
            machine.forget(mark);
        }
    }
    if machine.steps() == 0 {
        out.notes.push("evaluation was stopped at its limit".into());
    }
    out
}

/// The local variables of a component as one object, to be searched like a configuration.
fn scope_object(machine: &mut Machine, scope: Scope) -> Val {
    let members = machine.variables(scope);
    machine.obj(members).unwrap_or(Val::Undefined)
}

fn is_generator(name: &str) -> bool {
    let lower = name.to_lowercase();
    lower.contains("command") && (lower.contains("generate") || lower.contains("build") || lower.contains("get"))
}

/// The function that builds the command, with the object that it is a member of.
fn find_generator(value: &Val) -> Option<(Val, Val)> {
    let Val::Obj(members) = value else { return None };
    let members = members.borrow();
    if let Some((_, function)) = members
        .iter()
        .find(|(k, v)| is_generator(k) && matches!(v, Val::Func(_)))
    {
        return Some((function.clone(), value.clone()));
    }
    members.iter().find_map(|(_, inner)| {
        let Val::Obj(inner_members) = inner else { return None };
        let inner_members = inner_members.borrow();
        let (_, function) = inner_members
            .iter()
            .find(|(k, v)| is_generator(k) && matches!(v, Val::Func(_)))?;
        Some((function.clone(), inner.clone()))
    })
}

/// One option: its key in the state, its definition, and whether its items depend on the other options.
struct Choice {
    key: Rc<str>,
    option: Val,
    fixed: bool,
}

/// An object whose members all look like options.
fn find_options(value: &Val, depth: usize) -> Option<Val> {
    let Val::Obj(members) = value else { return None };
    let is_option = |v: &Val| {
        v.member("items").is_some_and(|i| i.items().is_some())
            || matches!(v.member("getDynamicItems"), Some(Val::Func(_)))
    };
    let members = members.borrow();
    let options = members.iter().filter(|(_, v)| is_option(v)).count();
    if options >= 1 && options * 2 > members.len() {
        return Some(value.clone());
    }
    if depth == 0 {
        return None;
    }
    members.iter().find_map(|(_, v)| find_options(v, depth - 1))
}

fn generate(machine: &mut Machine, from: &[Val], out: &mut Snippet) {
    for value in from {
        let (Some((function, this)), Some(options)) = (find_generator(value), find_options(value, 2)) else {
            continue;
        };
        let Val::Obj(members) = &options else { continue };
        let choices: Vec<Choice> = members
            .borrow()
            .iter()
            .filter(|(_, v)| matches!(v, Val::Obj(_)))
            .map(|(key, option)| Choice {
                key: key.clone(),
                option: option.clone(),
                fixed: false,
            })
            .collect();
        let Some(state) = state(machine, &choices) else {
            continue;
        };
        let mut run = Run {
            machine,
            function,
            this,
            state,
            choices,
            out,
            seen: BTreeSet::new(),
            combinations: 0,
        };
        run.thin_out();
        if run.walk(0).is_err() {
            run.out
                .notes
                .push("not every combination of options was tried: limit reached".into());
        }
    }
}

/// The state object that the component reads, or a new one.
fn state(machine: &mut Machine, choices: &[Choice]) -> Option<Members> {
    let known = machine.states.iter().find_map(|s| match s {
        Val::Obj(m) if choices.iter().any(|c| s.member(&c.key).is_some()) => Some(m.clone()),
        _ => None,
    });
    match known {
        Some(members) => Some(members),
        None => match machine.obj(Vec::new()) {
            Ok(Val::Obj(members)) => Some(members),
            _ => None,
        },
    }
}

struct Run<'a> {
    machine: &'a mut Machine,
    function: Val,
    this: Val,
    state: Members,
    choices: Vec<Choice>,
    out: &'a mut Snippet,
    seen: BTreeSet<(String, String)>,
    combinations: usize,
}

impl Run<'_> {
    fn items(&mut self, choice: usize) -> Eval<Vec<Val>> {
        let option = self.choices[choice].option.clone();
        let items = match option.member("getDynamicItems") {
            Some(function @ Val::Func(_)) => {
                let state = Val::Obj(self.state.clone());
                self.machine.call(&function, option.clone(), vec![state])?
            }
            _ => option.member("items").unwrap_or(Val::Undefined),
        };
        Ok(items.items().unwrap_or_default())
    }

    /// Fixes options that say nothing about the deployment's shape, until few enough combinations are left.
    fn thin_out(&mut self) {
        let mut counts: Vec<usize> = Vec::new();
        for i in 0..self.choices.len() {
            let mark = self.machine.mark();
            counts.push(self.items(i).map_or(1, |items| items.len().max(1)));
            self.machine.forget(mark);
        }
        let minor = |key: &str| {
            let key = key.to_lowercase();
            ["reason", "tool", "parser", "think", "radix", "mamba", "metric"]
                .iter()
                .any(|w| key.contains(w))
        };
        // What decides the deployment's shape is kept free as long as possible.
        let shape = |key: &str| {
            let key = key.to_lowercase();
            [
                "spec",
                "mtp",
                "quant",
                "precision",
                "model",
                "variant",
                "hardware",
                "gpu",
                "strategy",
                "parallel",
                "attention",
                "node",
                "tp",
                "dp",
            ]
            .iter()
            .any(|w| key.contains(w))
        };
        let mut order: Vec<usize> = (0..counts.len()).collect();
        order.sort_by_key(|&i| (!minor(&self.choices[i].key), shape(&self.choices[i].key), counts[i]));
        for i in order {
            let free: usize = (0..counts.len())
                .filter(|&j| !self.choices[j].fixed)
                .fold(1, |n, j| n.saturating_mul(counts[j]));
            if minor(&self.choices[i].key) || free > MAX_COMBINATIONS {
                self.choices[i].fixed = true;
            }
        }
    }

    fn walk(&mut self, at: usize) -> Eval<()> {
        let mark = self.machine.mark();
        if at == self.choices.len() {
            let done = self.leaf();
            self.machine.forget(mark);
            return done;
        }
        let items = self.items(at)?;
        let key = self.choices[at].key.clone();
        let checkbox = self.choices[at]
            .option
            .member("type")
            .and_then(|t| t.as_str().map(str::to_owned))
            .as_deref()
            == Some("checkbox");
        let usable = |v: &Val| !v.member("disabled").is_some_and(|d| d.truthy());
        let is_default = |v: &&Val| v.member("default").is_some_and(|d| d.truthy()) && usable(v);
        if checkbox {
            let chosen = items.iter().filter(is_default).filter_map(|v| v.member("id")).collect();
            let chosen = self.machine.arr(chosen)?;
            set_member(&self.state, &key, chosen);
            return self.walk(at + 1);
        }
        let chosen: Vec<Val> = if self.choices[at].fixed {
            items
                .iter()
                .find(is_default)
                .or_else(|| items.iter().find(|v| usable(v)))
                .into_iter()
                .cloned()
                .collect()
        } else {
            items.iter().filter(|v| usable(v)).cloned().collect()
        };
        if chosen.is_empty() {
            return self.walk(at + 1);
        }
        for item in chosen {
            if let Some(id) = item.member("id") {
                set_member(&self.state, &key, id);
                self.walk(at + 1)?;
            }
        }
        self.machine.forget(mark);
        Ok(())
    }

    /// One full combination.
    fn leaf(&mut self) -> Eval<()> {
        self.combinations += 1;
        if self.combinations > MAX_COMBINATIONS * 2 || self.out.commands.len() >= MAX_COMMANDS {
            return Err(super::eval::Stop);
        }
        // Items that a later choice disabled cannot be chosen on the page.
        for i in 0..self.choices.len() {
            if self.choices[i].fixed || self.choices[i].option.member("getDynamicItems").is_none() {
                continue;
            }
            let chosen = Val::Obj(self.state.clone()).member(&self.choices[i].key);
            let items = self.items(i)?;
            let same = items.iter().find(|v| {
                v.member("id")
                    .zip(chosen.clone())
                    .is_some_and(|(a, b)| a.same(&b) == Some(true))
            });
            if same.is_none_or(|v| v.member("disabled").is_some_and(|d| d.truthy())) {
                return Ok(());
            }
        }
        let state = Val::Obj(self.state.clone());
        let result = self
            .machine
            .call(&self.function.clone(), self.this.clone(), vec![state.clone()])?;
        let Some(command) = result.as_str() else { return Ok(()) };
        let labels: BTreeMap<String, String> = self
            .choices
            .iter()
            .filter(|c| !c.fixed)
            .filter_map(|c| state.member(&c.key).map(|v| (c.key.to_string(), v.text().to_string())))
            .collect();
        let hardware = labels
            .iter()
            .filter(|(k, _)| is_hardware_key(k))
            .map(|(_, v)| v.as_str())
            .collect::<Vec<_>>()
            .join(" ");
        let line = if let Val::Func(closure) = &self.function {
            closure.func.line
        } else {
            0
        };
        if self.seen.insert((command.to_owned(), hardware)) {
            self.out.commands.push(Generated {
                command: command.to_owned(),
                labels,
                line,
                verified: None,
                cell: false,
            });
        }
        Ok(())
    }
}

/// Whether an option's key names the hardware.
pub(crate) fn is_hardware_key(key: &str) -> bool {
    let key = key.to_lowercase();
    ["hardware", "hw", "gpu", "platform", "device"]
        .iter()
        .any(|w| key.contains(w))
}

/// A list of cells: `match`, `env`, `flags`, with model names in a table beside it.
fn read_cells(config: &Val, cells: &[Val], out: &mut Snippet) {
    let names = config.member("modelNames").unwrap_or(Val::Undefined);
    for cell in cells.iter().take(MAX_COMMANDS) {
        let Some(Val::Obj(matched)) = cell.member("match") else {
            continue;
        };
        let labels: BTreeMap<String, String> = matched
            .borrow()
            .iter()
            .map(|(k, v)| (k.to_string(), v.text().to_string()))
            .collect();
        let texts = |key: &str| cell.member(key).and_then(|v| v.items()).unwrap_or_default();
        let flags: Vec<Rc<str>> = texts("flags").iter().map(Val::text).collect();
        if flags.is_empty() {
            continue;
        }
        let model = model_of(&names, &labels).unwrap_or_else(|| format!("{MARK}MODEL_NAME{MARK_END}"));
        let mut command = String::new();
        for env in texts("env") {
            command.push_str(&env.text());
            command.push(' ');
        }
        command.push_str("sglang serve");
        for flag in &flags {
            command.push(' ');
            command.push_str(flag);
        }
        if let Some(nodes) = labels
            .get("nodes")
            .and_then(|n| n.rsplit('-').next())
            .filter(|n| n.parse::<u32>().is_ok())
        {
            command.push_str(&format!(" --nnodes {nodes}"));
        }
        let command = fill(&command.replace("{{MODEL_NAME}}", &model));
        let verified = cell.member("verified").map(|v| v.truthy());
        let line = cell.member(ast::LINE).and_then(|v| v.number()).map_or(0, |n| n as u32);
        out.commands.push(Generated {
            command,
            labels,
            line,
            verified,
            cell: true,
        });
    }
}

/// The model of a cell: the entry of the table whose key parts all occur in the match, and which has most parts.
fn model_of(names: &Val, labels: &BTreeMap<String, String>) -> Option<String> {
    let Val::Obj(members) = names else { return None };
    let members = members.borrow();
    members
        .iter()
        .filter(|(key, _)| key.split('|').all(|part| labels.values().any(|v| v == part)))
        .max_by_key(|(key, _)| key.split('|').count())
        .map(|(_, v)| v.text().to_string())
}

/// Turns `{{NAME}}` into a marked unknown.
fn fill(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        match after.split_once("}}") {
            Some((name, tail)) if name.len() < 80 => {
                out.push(MARK);
                out.push_str(name);
                out.push(MARK_END);
                rest = tail;
            }
            _ => {
                out.push_str("{{");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}
