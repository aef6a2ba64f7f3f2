//! What `policy check` says about a policy beyond its form, and the JSON Schema of policy files.

use countersign_policy::{LoadError, LoadedPolicy, Policy};
use serde_json::{Value, json};

use crate::checks as registry;

/// Something about a policy that is no error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyNote {
    /// Row number.
    pub number: u32,
    /// Check.
    pub slug: String,
    /// What, with what follows from it.
    pub message: String,
}

/// Checks every check's parameters, and lists the checks that this version does not have.
///
/// # Errors
/// The first parameters that cannot be read, with their place.
pub fn validate(policy: &LoadedPolicy) -> Result<Vec<PolicyNote>, LoadError> {
    let mut notes = Vec::new();
    for entry in &policy.policy.checks {
        for slug in entry.slugs() {
            match registry::find(slug) {
                Some(check) => check.check_params(policy)?,
                None => notes.push(PolicyNote {
                    number: entry.number,
                    slug: slug.to_owned(),
                    message: "not implemented in this version: no verdict under this policy can be PASS without a person's confirmation".to_owned(),
                }),
            }
        }
    }
    Ok(notes)
}

/// JSON Schema of a policy file, with the parameters of every check.
#[must_use]
pub fn schema() -> Value {
    let mut schema = serde_json::to_value(schemars::schema_for!(Policy)).unwrap_or_default();
    let arms: Vec<Value> = registry::all()
        .iter()
        .map(|check| {
            let mut params = serde_json::to_value(check.params_schema()).unwrap_or_default();
            if let Some(map) = params.as_object_mut() {
                map.remove("$schema");
            }
            json!({
                "if": { "properties": { "slug": { "const": check.slug() } } },
                "then": { "properties": { "params": params } }
            })
        })
        .collect();
    if let Some(entry) = schema.pointer_mut("/$defs/CheckEntry").and_then(Value::as_object_mut) {
        entry.insert("allOf".to_owned(), Value::Array(arms));
    }
    if let Some(root) = schema.as_object_mut() {
        // A file that extends another may leave out what the other one has.
        root.remove("required");
        if let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert("extends".to_owned(), json!({ "type": "string", "description": "Name of a policy file beside this one whose values stand where this one has none." }));
        }
    }
    schema
}
