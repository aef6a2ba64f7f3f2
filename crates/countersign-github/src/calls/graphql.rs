//! GraphQL, for the few things that REST does not have.

use serde::Deserialize;
use serde_json::{Value, json};

use super::call::Call;
use super::limits::Tally;
use crate::client::hub::{Hub, Who};
use crate::error::GitHubError;

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    data: Option<Value>,
    #[serde(default)]
    errors: Vec<Problem>,
}

#[derive(Deserialize)]
struct Problem {
    #[serde(default)]
    message: String,
    #[serde(rename = "type", default)]
    kind: Option<String>,
}

impl Hub {
    /// Sends a query, or a mutation of which a second copy does nothing. Half an answer is none.
    pub(crate) async fn graphql(
        &self,
        who: &Who,
        query: &str,
        variables: Value,
        what: &str,
        tally: &Tally,
    ) -> Result<Value, GitHubError> {
        let call = Call::post(String::new(), json!({"query": query, "variables": variables}), what).repeatable();
        let url = self.transport.graphql_url().to_owned();
        let body: Body = self.send_to(who, &call, &url, tally).await?.decode(what)?;
        if let Some(problem) = body.errors.first() {
            return Err(self.problem(problem, what));
        }
        body.data.ok_or_else(|| GitHubError::Decode {
            what: what.to_owned(),
            path: "data".into(),
            why: "it is missing".into(),
        })
    }

    fn problem(&self, problem: &Problem, what: &str) -> GitHubError {
        let what = what.to_owned();
        let message: String = problem
            .message
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(300)
            .collect();
        match problem.kind.as_deref() {
            Some("NOT_FOUND") => GitHubError::NotFound { what },
            Some("FORBIDDEN" | "INSUFFICIENT_SCOPES") => GitHubError::Forbidden {
                resource: what,
                message,
            },
            Some("RATE_LIMITED" | "RATE_LIMIT") => GitHubError::RateLimited {
                until: self.config.time.now() + chrono::TimeDelta::seconds(60),
            },
            Some(_) => GitHubError::Unprocessable { what, message },
            // Without a type: GitHub's "something went wrong".
            None => GitHubError::Transient {
                status: 200,
                what,
                message,
            },
        }
    }
}
