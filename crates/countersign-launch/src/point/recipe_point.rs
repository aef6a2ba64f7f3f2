//! Points that a recipe or a table of flags describes.

use countersign_matrix as matrix;
use matrix::{Resolution, RowShape, ScenarioType, UsedRecipe, Worker};

use std::collections::{BTreeMap, BTreeSet};

use super::rules::{TableKind, TableRule};
use super::{Missing, PointLaunches, Tree, place, script};
use crate::client::ClientCall;
use crate::engine::Role;
use crate::flags::Via;
use crate::launch::Launch;
use crate::recipe::{self, Injected, Injection, RecipeOptions, TableInput};

/// Reads a recipe of the tree and adds its launches.
pub(super) fn from_recipe(
    tree: &Tree<'_>,
    row: &matrix::Row,
    used: &UsedRecipe,
    resolution: &Resolution,
    out: &mut PointLaunches,
) {
    let Some(text) = used
        .path
        .as_deref()
        .filter(|_| used.exists)
        .and_then(|p| tree.files.read(p))
    else {
        out.missing
            .push(Missing::Recipe(used.path.clone().unwrap_or_else(|| used.name.clone())));
        return;
    };
    let path = used.path.as_deref().unwrap_or(&used.name);
    let (injection, note) = injection(tree, row, resolution);
    out.notes.extend(note);
    let options = RecipeOptions {
        selector: used.selector.as_deref(),
        injection,
    };
    match recipe::read(path, &text, &options) {
        Ok(recipe) => {
            out.files.push(path.to_owned());
            if let Injected::Aborts(why) = &recipe.injected {
                out.notes.push(format!(
                    "{path}: the injection of acceptance would abort the job: {why}"
                ));
            }
            out.notes.extend(recipe.notes);
            out.launches.extend(recipe.launches);
            out.client = out.client.take().or(recipe.client);
        }
        Err(error) => out.missing.push(Missing::Unreadable(error.to_string())),
    }
}

fn workers(row: &matrix::Row) -> Vec<(Role, &Worker)> {
    match &row.shape {
        RowShape::Multi { prefill, decode } => vec![(Role::Prefill, &**prefill), (Role::Decode, &**decode)],
        RowShape::Single(_) => Vec::new(),
    }
}

fn setting<'r>(row: &'r matrix::Row, name: &str) -> Option<&'r str> {
    workers(row).into_iter().find_map(|(_, w)| w.setting(name))
}

/// The injection that this point gets, and a remark where it asks for one that nothing carries out.
fn injection(tree: &Tree<'_>, row: &matrix::Row, resolution: &Resolution) -> (Option<Injection>, Option<String>) {
    let Some(rules) = &tree.rules.injection else {
        return (None, None);
    };
    let asked = setting(row, &rules.setting) == Some(rules.value.as_str());
    if !asked || row.purpose() == matrix::Purpose::Eval {
        return (None, None);
    }
    let here: Vec<bool> = resolution
        .launchers
        .iter()
        .filter(|l| l.exists)
        .map(|l| rules.launchers.contains(&l.path))
        .collect();
    let source = place(row);
    if here.is_empty() || here.iter().any(|injects| !injects) {
        let names: Vec<&str> = resolution.launchers.iter().map(|l| l.path.as_str()).collect();
        return (
            None,
            Some(format!(
                "{source}: {} is set, but {} does not inject",
                rules.setting,
                names.join(", ")
            )),
        );
    }
    let kind = rules.frameworks.get(&*row.head.framework).copied();
    let length = setting(row, &rules.length_setting).map(str::to_owned);
    (Some(Injection { kind, length, source }), None)
}

/// Reads a table of flags, or an llm-d recipe, for both roles of each of several points of one entry.
pub(super) fn from_table(
    tree: &Tree<'_>,
    points: &[(&matrix::Row, Resolution)],
    rule: &TableRule,
) -> Vec<PointLaunches> {
    let mut out: Vec<PointLaunches> = vec![PointLaunches::default(); points.len()];
    let mut read: Vec<(usize, Vec<Launch>)> = Vec::new();
    for (at, (row, resolution)) in points.iter().enumerate() {
        if let Some(launches) = table_launches(tree, row, rule, resolution, &mut out[at]) {
            read.push((at, launches));
        }
    }
    if let Some(path) = rule.server_script.as_deref() {
        let own: Vec<&(&matrix::Row, Resolution)> = read.iter().map(|(at, _)| &points[*at]).collect();
        let found = server_scripts(tree, &own, rule, path);
        for ((at, launches), (found, calls)) in read.iter_mut().zip(found) {
            add_script(path, found, calls, launches, &mut out[*at]);
        }
    }
    for (at, launches) in read {
        out[at].launches.extend(launches);
    }
    out
}

/// What the table says of one point; nothing, with the reason, where it cannot be read.
fn table_launches(
    tree: &Tree<'_>,
    row: &matrix::Row,
    rule: &TableRule,
    resolution: &Resolution,
    out: &mut PointLaunches,
) -> Option<Vec<Launch>> {
    let named = resolution.recipes.iter().find(|r| !r.eval_only);
    let path = rule.file.clone().or_else(|| named.and_then(|r| r.path.clone()));
    let Some((path, text)) = path.as_ref().and_then(|p| tree.files.read(p).map(|t| (p.clone(), t))) else {
        out.missing
            .push(Missing::Recipe(path.unwrap_or_else(|| "table of flags".into())));
        return None;
    };
    let draft = match &rule.draft_setting {
        Some(name) => Some(setting(row, name).and_then(|v| v.parse().ok()).unwrap_or(0)),
        None => Some(0),
    };
    let inputs: Vec<(Role, TableInput)> = workers(row)
        .into_iter()
        .map(|(role, w)| {
            let input = TableInput {
                tp: u32::try_from(w.tp).ok(),
                ep: Some(w.ep > 1),
                dp_attention: Some(w.dp_attention),
                draft_tokens: draft,
                agentic: row.scenario() == ScenarioType::Agentic,
                source: Some(place(row)),
            };
            (role, input)
        })
        .collect();
    let read = match rule.kind {
        TableKind::LlmD => recipe::llmd_recipe(&path, &text, &inputs),
        TableKind::Models => inputs
            .iter()
            .map(|(role, input)| recipe::model_table(rule.engine, &path, &text, &row.head.model, *role, input))
            .collect(),
    };
    match read {
        Ok(launches) => {
            out.files.push(path);
            let mut launches = launches;
            for launch in &mut launches {
                name_model(launch, row);
            }
            Some(launches)
        }
        Err(error) => {
            out.missing.push(Missing::Unreadable(error.to_string()));
            None
        }
    }
}

/// Tables name neither model nor image: the entry does.
fn name_model(launch: &mut Launch, row: &matrix::Row) {
    launch.image = Some(row.head.image.replace('#', "/"));
    if !launch.flags.mentions("model") && !launch.flags.mentions("model-path") {
        let value = crate::flags::FlagValue {
            value: crate::value::Text::known(&*row.head.model),
            spelled: "model".into(),
            source: place(row),
            via: Via::Recipe,
        };
        launch.flags.push("model", value);
        let role = launch.role;
        launch.settle();
        launch.role = role;
    }
}

/// What the server script does for each of several points, on the machines of each role.
fn server_scripts(
    tree: &Tree<'_>,
    points: &[&(&matrix::Row, Resolution)],
    rule: &TableRule,
    path: &str,
) -> Vec<(PointLaunches, Vec<ClientCall>)> {
    let mut out: Vec<(PointLaunches, Vec<ClientCall>)> = points.iter().map(|_| Default::default()).collect();
    let mut around: Vec<script::Surroundings<'_>> = points
        .iter()
        .map(|_| script::Surroundings {
            answers: &rule.answers,
            files: rule
                .server_files
                .iter()
                .map(|(name, text)| (name.clone(), text.as_str().into()))
                .collect(),
            ..script::Surroundings::default()
        })
        .collect();
    if let Some(program) = &rule.handed_to {
        let there = |(_, resolution): &&(&matrix::Row, Resolution)| -> BTreeSet<String> {
            let there = resolution.scripts.iter().filter(|s| s.exists);
            there.map(|s| s.path.clone()).collect()
        };
        for own in points.iter().flat_map(there).collect::<BTreeSet<String>>() {
            let places: Vec<usize> = (0..points.len())
                .filter(|at| there(&points[*at]).contains(&own))
                .collect();
            let rows: Vec<&matrix::Row> = places.iter().map(|at| points[*at].0).collect();
            let plain = script::Surroundings::default();
            let setups = rows.iter().map(|row| script::setup(tree, row, &own, &plain)).collect();
            script::evaluate_for_all(
                tree,
                &rows,
                setups,
                (&[], Some(program.as_str())),
                |nth, evaluation, (lane, _)| {
                    let Some(handed) = script::handed_over(evaluation, program, lane) else {
                        return false;
                    };
                    let at = places[nth];
                    around[at].inherited.extend(handed);
                    out[at].0.files.extend(evaluation.files.iter().map(|f| f.to_string()));
                    true
                },
            );
        }
    }
    let rows: Vec<&matrix::Row> = points.iter().map(|(row, _)| *row).collect();
    let once = [BTreeMap::new()];
    for run in if rule.server_runs.is_empty() {
        &once[..]
    } else {
        &rule.server_runs[..]
    } {
        let given = |(row, around): (&&matrix::Row, &mut script::Surroundings<'_>)| {
            around.variables = rule.server_variables.clone();
            around.variables.extend(run.iter().map(|(k, v)| (k.clone(), v.clone())));
            script::setup(tree, row, path, around)
        };
        let setups = rows.iter().zip(&mut around).map(given).collect();
        script::evaluate_for_all(tree, &rows, setups, (&rule.answers, None), |at, evaluation, lane| {
            let mut found = out[at].0.clone();
            let calls = script::read(tree, rows[at], evaluation, lane, &mut found);
            let told = calls.is_some();
            if let Some(calls) = calls {
                out[at].0 = found;
                out[at].1.extend(calls);
            }
            told
        });
    }
    out
}

/// Adds the environment that the server script gives to each role. Its flags come from the table: the script reads
/// them through a program that is not run here.
fn add_script(
    path: &str,
    mut found: PointLaunches,
    calls: Vec<ClientCall>,
    launches: &mut [Launch],
    out: &mut PointLaunches,
) {
    out.client = out.client.take().or_else(|| super::join_clients(calls));
    found.files.sort();
    found.files.dedup();
    out.files.extend(found.files);
    let cut = found.missing.iter().any(|m| matches!(m, Missing::Truncated(_)));
    out.missing
        .extend(found.missing.into_iter().filter(|m| matches!(m, Missing::Truncated(_))));
    for launch in launches {
        let ways: Vec<&Launch> = found
            .launches
            .iter()
            .filter(|l| l.role == launch.role && l.engine == launch.engine)
            .collect();
        add_environment(launch, &ways);
        if cut || ways.is_empty() {
            launch
                .open_environment
                .push(format!("{path} was not followed to its end"));
        }
        let role = launch.role;
        launch.settle();
        launch.role = role;
    }
    out.launches
        .extend(found.launches.into_iter().filter(|l| l.engine == crate::Engine::Router));
}

/// Adds what all ways through a script set alike; what they set differently depends on the way.
fn add_environment(launch: &mut Launch, ways: &[&Launch]) {
    let names: BTreeSet<&String> = ways.iter().flat_map(|l| l.environment.keys()).collect();
    for name in names {
        let values: Vec<_> = ways.iter().map(|l| l.environment.get(name)).collect();
        let Some(first) = values.iter().flatten().next() else {
            continue;
        };
        let same = values.iter().all(|v| v.is_some_and(|v| v.value == first.value));
        let mut value = (*first).clone();
        if !same {
            let conditions: Vec<String> = ways.iter().flat_map(|l| l.conditions.iter().cloned()).take(2).collect();
            value.value =
                crate::value::Text::unknown(format!("way through {}: {}", first.source.file, conditions.join("; ")));
        }
        launch.environment.entry(name.clone()).or_insert(value);
    }
}
