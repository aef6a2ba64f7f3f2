//! Credentials: the App's JWT, installation tokens, personal tokens, or none; and what each may do.

use std::collections::{BTreeMap, BTreeSet};

use http::HeaderMap;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::Deserialize;

use super::message::{ApiError, Req};
use crate::state::State;
use crate::state::model::Token;

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The App itself, by its JWT.
    App,
    /// An installation, limited to some repositories where the token was.
    Installation {
        id: u64,
        repositories: Option<BTreeSet<String>>,
    },
    /// A person, by a token of theirs.
    Person(String),
    Anonymous,
}

impl Caller {
    /// For the log of calls.
    pub(crate) fn kind(&self) -> crate::handle::TokenKind {
        use crate::handle::TokenKind;
        match self {
            Caller::App => TokenKind::App,
            Caller::Installation { .. } => TokenKind::Installation,
            Caller::Person(_) => TokenKind::Person,
            Caller::Anonymous => TokenKind::None,
        }
    }

    /// The key under which limits are counted.
    pub(crate) fn bucket(&self) -> String {
        match self {
            Caller::App => "app".to_owned(),
            Caller::Installation { id, .. } => format!("installation {id}"),
            Caller::Person(login) => format!("user {login}"),
            Caller::Anonymous => "anonymous".to_owned(),
        }
    }
}

#[derive(Debug, Deserialize)]
struct Claims {
    iat: i64,
    exp: i64,
    iss: serde_json::Value,
}

/// What is asked of a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Read,
    Write,
}

impl State {
    /// Finds out who calls. Times are the machine's, since clients sign and cache with their own clock.
    pub(crate) fn caller(&mut self, headers: &HeaderMap) -> Result<Caller, ApiError> {
        let Some(value) = headers.get("authorization") else {
            return Ok(Caller::Anonymous);
        };
        let bad = || ApiError::Status(401, "Bad credentials".to_owned());
        let value = value.to_str().map_err(|_| bad())?;
        let (scheme, token) = value.split_once(' ').ok_or_else(bad)?;
        if !scheme.eq_ignore_ascii_case("bearer") && !scheme.eq_ignore_ascii_case("token") {
            return Err(bad());
        }
        let token = token.trim();
        if token.matches('.').count() == 2 {
            return self.jwt(token).map(|()| Caller::App);
        }
        match self.tokens.get(token) {
            None => Err(bad()),
            Some(Token::Person { login }) => Ok(Caller::Person(login.clone())),
            Some(Token::Installation {
                installation,
                expires_at,
                repositories,
            }) => {
                if *expires_at <= chrono::Utc::now() {
                    return Err(bad());
                }
                Ok(Caller::Installation {
                    id: *installation,
                    repositories: repositories.clone(),
                })
            }
        }
    }

    /// Checks a JWT as GitHub does: RS256 with the App's key, its id as issuer, not from the future, at most ten minutes.
    fn jwt(&self, token: &str) -> Result<(), ApiError> {
        let refuse = |message: &str| ApiError::Status(401, message.to_owned());
        let undecodable = "A JSON web token could not be decoded";
        let mut validation = Validation::new(Algorithm::RS256);
        validation.validate_exp = false;
        validation.validate_aud = false;
        validation.set_required_spec_claims(&["exp", "iss"]);
        let key = DecodingKey::from_rsa_pem(crate::TEST_KEY_PUBLIC_PEM.as_bytes()).map_err(|_| refuse(undecodable))?;
        let data = jsonwebtoken::decode::<Claims>(token, &key, &validation).map_err(|_| refuse(undecodable))?;
        let claims = data.claims;
        let now = chrono::Utc::now().timestamp();
        let issuer = match &claims.iss {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if issuer != self.app.id.to_string() && issuer != format!("Iv1.{:016x}", self.app.id) {
            return Err(refuse("'Issuer' claim ('iss') must be the App's ID"));
        }
        if claims.exp <= now {
            return Err(refuse(
                "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires",
            ));
        }
        if claims.exp > now + 600 || claims.exp - claims.iat > 660 {
            return Err(refuse("'Expiration time' claim ('exp') is too far in the future"));
        }
        if claims.iat > now + 60 {
            return Err(refuse(
                "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued",
            ));
        }
        Ok(())
    }

    /// Makes an installation token.
    pub(crate) fn mint(
        &mut self,
        installation: u64,
        repositories: Option<BTreeSet<String>>,
    ) -> (String, chrono::DateTime<chrono::Utc>) {
        let id = self.fresh_id();
        let token = format!(
            "ghs_{}",
            &crate::state::build::made_up_sha(&format!("token {id}"))[..36]
        );
        let expires_at = chrono::Utc::now() + chrono::TimeDelta::hours(1);
        self.tokens.insert(
            token.clone(),
            Token::Installation {
                installation,
                expires_at,
                repositories,
            },
        );
        (token, expires_at)
    }

    /// Whether the caller may do something in a repository; the repository's own name comes back.
    pub(crate) fn permit(&self, req: &Req, repo: &str, permission: &str, level: Level) -> Result<String, ApiError> {
        let Some(r) = self.repo(repo) else {
            return Err(if self.partial {
                ApiError::Unknown(format!("the repository {repo}"))
            } else {
                ApiError::NotFound
            });
        };
        let name = r.name.clone();
        let refused = || {
            if r.private {
                ApiError::NotFound
            } else {
                ApiError::forbidden()
            }
        };
        match &req.caller {
            Caller::App => Err(ApiError::Status(
                401,
                "A JSON web token cannot be used here: use an installation's token".to_owned(),
            )),
            Caller::Anonymous if level == Level::Write => {
                Err(ApiError::Status(401, "Requires authentication".to_owned()))
            }
            Caller::Anonymous if r.private => Err(ApiError::NotFound),
            Caller::Anonymous => Ok(name),
            Caller::Person(login) => {
                let role = r
                    .collaborators
                    .iter()
                    .flatten()
                    .find(|(l, _)| l.eq_ignore_ascii_case(login));
                let role = role.map_or("none", |(_, role)| role.permission());
                let allowed = match (permission, level) {
                    (_, Level::Read) => !r.private || role != "none",
                    ("issues" | "pull_requests", Level::Write) => !r.private || role != "none",
                    (_, Level::Write) => matches!(role, "admin" | "write"),
                };
                if allowed { Ok(name) } else { Err(refused()) }
            }
            Caller::Installation { id, repositories } => {
                let ours = r.installation == Some(*id)
                    && repositories
                        .as_ref()
                        .is_none_or(|set| set.contains(&name.to_ascii_lowercase()));
                if !ours {
                    return if r.private || level == Level::Write {
                        Err(refused())
                    } else {
                        Ok(name)
                    };
                }
                self.granted(*id, permission, level)
                    .then_some(name)
                    .ok_or_else(ApiError::forbidden)
            }
        }
    }

    /// Whether an installation has a permission. Reading metadata is always granted.
    pub(crate) fn granted(&self, installation: u64, permission: &str, level: Level) -> bool {
        if permission == "metadata" && level == Level::Read {
            return true;
        }
        let granted = |permissions: &BTreeMap<String, String>, name: &str| {
            let has = permissions.get(name).map(String::as_str);
            matches!((has, level), (Some("write" | "admin"), _) | (Some("read"), Level::Read))
        };
        let Some(i) = self.installations.get(&installation) else {
            return false;
        };
        // Comments on pull requests may be written with either permission.
        granted(&i.permissions, permission) || (permission == "issues" && granted(&i.permissions, "pull_requests"))
    }
}
