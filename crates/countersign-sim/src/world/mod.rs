//! The world file: a whole GitHub in one YAML document. `docs/worlds.md` describes it for people; `config/schema/world.json`
//! for editors. Unknown fields are errors with line and column.

pub mod actions;
pub mod faults;
pub mod load;
pub mod pulls;
pub mod repo;
pub mod spell;
pub mod timeline;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::faults::FaultSpec;
use self::repo::RepoSpec;
use self::spell::{Clock, Span, text_or_map};
use self::timeline::Step;

/// The only version of the format.
pub const VERSION: u32 = 1;

/// A world: what GitHub would answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// The version of this format: 1.
    pub world: u32,
    /// Where true, what the world does not say is unknown: asking for it is answered with 501 by name, never with an empty list.
    #[serde(default)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// What this world is for.
    #[serde(default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The simulated time at the start, or `real`.
    #[serde(default)]
    pub clock: Clock,
    /// The GitHub App.
    #[serde(default)]
    #[serde(skip_serializing_if = "is_default")]
    pub app: AppSpec,
    /// Where the App is installed; when left out, once for each owner in `repositories`, with all of that owner's.
    #[serde(default)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub installations: Vec<InstallationSpec>,
    /// Repositories where the App is installed, by `owner/name`.
    #[serde(default)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub repositories: BTreeMap<String, RepoSpec>,
    /// Public repositories elsewhere, by `owner/name`: the same fields, but the App is not installed there.
    #[serde(default)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub upstream: BTreeMap<String, RepoSpec>,
    /// Organisations, by login.
    #[serde(default)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub orgs: BTreeMap<String, OrgSpec>,
    /// Users of whom more is to be said, by login. All other logins exist too.
    #[serde(default)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub users: BTreeMap<String, UserSpec>,
    /// Personal tokens, by token → login.
    #[serde(default)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tokens: BTreeMap<String, String>,
    /// Web pages outside GitHub, by URL.
    #[serde(default)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pages: BTreeMap<String, PageSpec>,
    /// Rate limits.
    #[serde(default)]
    #[serde(skip_serializing_if = "is_default")]
    pub limits: LimitSpec,
    /// How long each API call takes at least.
    #[serde(default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Span>,
    /// How short forms are spelled out.
    #[serde(default)]
    #[serde(skip_serializing_if = "is_default")]
    pub short_forms: ShortForms,
    /// Faults to inject.
    #[serde(default)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultSpec>,
    /// Facts that could not be read when the world was recorded, by what they are, and why.
    #[serde(default)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<String, GapSpec>,
    /// Facts that were looked for when the world was recorded and are not there, by what they are.
    #[serde(default)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
    /// Where links for people start; `https://github.com` when left out.
    #[serde(default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web: Option<String>,
    /// What happens, in order.
    #[serde(default)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Step>,
}

/// What is as it is when left out is left out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Why a fact could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GapSpec {
    /// What was read, where that is put otherwise than the fact.
    #[serde(default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// `transient`, `forbidden`, `too_large`, `malformed` or `not_recorded`.
    pub kind: String,
    /// Why it failed.
    pub why: String,
}

impl Default for World {
    fn default() -> Self {
        World {
            world: VERSION,
            partial: false,
            description: None,
            clock: Clock::default(),
            app: AppSpec::default(),
            installations: Vec::new(),
            repositories: BTreeMap::new(),
            upstream: BTreeMap::new(),
            orgs: BTreeMap::new(),
            users: BTreeMap::new(),
            tokens: BTreeMap::new(),
            pages: BTreeMap::new(),
            limits: LimitSpec::default(),
            latency: None,
            short_forms: ShortForms::default(),
            faults: Vec::new(),
            unavailable: BTreeMap::new(),
            absent: Vec::new(),
            web: None,
            timeline: Vec::new(),
        }
    }
}

/// The GitHub App. Its key is the test key that ships with this crate (`countersign_sim::TEST_KEY_PEM`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AppSpec {
    /// The App's id.
    pub id: u64,
    /// Its slug: comments it writes are by `<slug>[bot]`.
    pub slug: String,
    /// Its name.
    pub name: String,
    /// The login of its owner.
    pub owner: String,
    /// The secret with which webhooks are signed.
    pub webhook_secret: String,
    /// Permissions that were granted, by name → `read` or `write`. Everything that is served may be called when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<BTreeMap<String, String>>,
    /// Events that are delivered; all when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
}

impl Default for AppSpec {
    fn default() -> Self {
        AppSpec {
            id: 1001,
            slug: "countersign".to_owned(),
            name: "Countersign".to_owned(),
            owner: "countersign-owner".to_owned(),
            webhook_secret: "test-secret".to_owned(),
            permissions: None,
            events: None,
        }
    }
}

/// One installation of the App.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InstallationSpec {
    /// Its id.
    pub id: u64,
    /// The organisation or user.
    pub account: String,
    /// The repositories; all of the account's when left out.
    #[serde(default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repositories: Option<Vec<String>>,
    /// Whether it is suspended.
    #[serde(default)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Permissions that differ from the App's.
    #[serde(default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<BTreeMap<String, String>>,
}

/// An organisation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OrgSpec {
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// Its members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<String>>,
    /// Its owners, who are members too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<String>,
    /// The status with which a question about membership is refused, such as 403.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<u16>,
    /// Its teams, by slug.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub teams: BTreeMap<String, TeamSpec>,
}

/// A team, written as a list of its members or as a mapping.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TeamSpec {
    /// Its members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<String>>,
    /// Members who were invited and have not yet accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<String>,
    /// The status with which every question about it is refused: 403 or 404.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<u16>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct FullTeam {
    members: Option<Vec<String>>,
    pending: Vec<String>,
    unreadable: Option<u16>,
}

impl JsonSchema for TeamSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TeamSpec".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let full = generator.subschema_for::<FullTeam>();
        schemars::json_schema!({"anyOf": [{"type": "array", "items": {"type": "string"}}, full]})
    }
}

impl<'de> Deserialize<'de> for TeamSpec {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> serde::de::Visitor<'de> for V {
            type Value = TeamSpec;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of members, or a mapping with members, pending or unreadable")
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<TeamSpec, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = seq.next_element()? {
                    members.push(member);
                }
                Ok(TeamSpec {
                    members: Some(members),
                    ..TeamSpec::default()
                })
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<TeamSpec, A::Error> {
                let full = FullTeam::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(TeamSpec {
                    members: full.members,
                    pending: full.pending,
                    unreadable: full.unreadable,
                })
            }
        }
        d.deserialize_any(V)
    }
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UserSpec {
    /// The id; made from the login when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// `User`, `Bot` or `Organization`; `Bot` for a login that ends in `[bot]`.
    #[serde(rename = "type")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The name in commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The address in commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// An account that does not exist any more: answers are 404.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub missing: bool,
}

/// A web page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct PageSpec(pub FullPage);

/// The fields of a web page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FullPage {
    /// The status.
    pub status: u16,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// A file with the text, relative to the world file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_file: Option<String>,
    /// `Content-Type`.
    pub content_type: String,
    /// The `Location` of a redirect; the status is then 302 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
    /// How long the answer takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
}

impl Default for FullPage {
    fn default() -> Self {
        FullPage {
            status: 200,
            body: None,
            body_file: None,
            content_type: "text/html; charset=utf-8".to_owned(),
            redirect: None,
            delay: None,
        }
    }
}

impl From<FullPage> for PageSpec {
    fn from(mut full: FullPage) -> Self {
        if full.redirect.is_some() && full.status == 200 {
            full.status = 302;
        }
        PageSpec(full)
    }
}

text_or_map!(
    PageSpec,
    FullPage,
    "a page's text, or a mapping with body, status or redirect",
    |text| Ok::<_, String>(PageSpec(FullPage {
        body: Some(text.to_owned()),
        ..FullPage::default()
    }))
);

/// Rate limits. The reset time is the machine's, since clients compare it with their own clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSpec {
    /// Calls in one window; a 304 is not counted.
    pub core: u64,
    /// How long a window is.
    pub window: Span,
    /// Writes a minute, over which the secondary limit answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes_per_minute: Option<u64>,
    /// Calls under way at once, over which the secondary limit answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent: Option<u64>,
    /// `Retry-After` of the secondary limit, in seconds; none sends the answer without the header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
}

impl Default for LimitSpec {
    fn default() -> Self {
        LimitSpec {
            core: 5_000,
            window: Span(std::time::Duration::from_secs(3_600)),
            writes_per_minute: None,
            concurrent: None,
            retry_after: Some(1),
        }
    }
}

/// How short forms are spelled out: names of jobs, and the artifact that evaluation scores become.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ShortForms {
    /// The name of a job in a lane, from `{lane}` and `{job}`.
    pub job: String,
    /// The name of the one job of a lane that was skipped as a whole, from `{lane}`.
    pub skipped_lane: String,
    /// The artifact of evaluation scores.
    pub eval_artifact: String,
    /// The file in it.
    pub eval_file: String,
    /// Fields that each row has unless it says otherwise.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub eval_row: BTreeMap<String, serde_json::Value>,
}

impl Default for ShortForms {
    fn default() -> Self {
        ShortForms {
            job: "{lane} / / {job}".to_owned(),
            skipped_lane: "{lane} /".to_owned(),
            eval_artifact: "eval_results_all".to_owned(),
            eval_file: "agg_eval_all.json".to_owned(),
            eval_row: BTreeMap::new(),
        }
    }
}

/// The JSON Schema of the format, as checked in at `config/schema/world.json`.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(World).to_value();
    if let Some(map) = schema.as_object_mut() {
        map.insert("title".to_owned(), "Countersign world".into());
    }
    schema
}
