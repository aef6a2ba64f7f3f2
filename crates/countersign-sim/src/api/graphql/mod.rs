//! `POST /graphql`: hiding comments, and who edited what when. A field that is not served is answered with 501 by name.

mod parse;

use serde_json::{Map, Value, json};

use self::parse::{Document, Selection};
use super::{Reply, known, number};
use crate::http::auth::{Caller, Level};
use crate::http::message::{Answer, ApiError, Req};
use crate::shapes::{node, time};
use crate::state::State;
use crate::state::model::Edited;

/// What a field's value is.
enum Out {
    Value(Value),
    Object(Object),
    Objects(Vec<Object>),
}

/// An object of the graph.
#[derive(Debug, Clone)]
enum Object {
    Query,
    Mutation,
    Repo(String),
    Pull(String, u64),
    Comment(String, u64),
    Review(String, u64),
    ReviewComment(String, u64),
    Actor(String),
    /// A page of a list: the nodes, the total, and where the next page starts.
    Page(Vec<Object>, usize, Option<String>),
    PageInfo(Option<String>),
    /// The answer of `minimizeComment`: the payload, holding the comment.
    Minimized(Box<Object>),
    Limit,
}

impl Object {
    fn kind(&self) -> &'static str {
        match self {
            Object::Query => "Query",
            Object::Mutation => "Mutation",
            Object::Repo(_) => "Repository",
            Object::Pull(..) => "PullRequest",
            Object::Comment(..) => "IssueComment",
            Object::Review(..) => "PullRequestReview",
            Object::ReviewComment(..) => "PullRequestReviewComment",
            Object::Actor(login) if login.ends_with("[bot]") => "Bot",
            Object::Actor(_) => "User",
            Object::Page(..) => "Connection",
            Object::PageInfo(_) => "PageInfo",
            Object::Minimized(_) => "MinimizeCommentPayload",
            Object::Limit => "RateLimit",
        }
    }
}

struct Execution<'a> {
    document: &'a Document,
    variables: Value,
    req: &'a Req,
    /// Errors of single fields, beside the data.
    errors: Vec<Value>,
}

pub(super) fn call(s: &mut State, req: &Req) -> Reply {
    if matches!(req.caller, Caller::Anonymous | Caller::App) {
        return Err(ApiError::Status(
            401,
            "This endpoint requires you to be authenticated.".to_owned(),
        ));
    }
    let body = req.json()?;
    let text = body["query"].as_str().unwrap_or("");
    let document = match parse::parse(text) {
        Ok(document) => document,
        Err(e) => {
            return Ok(Answer::ok(
                &json!({"errors": [{"message": format!("Parse error: {e}"), "locations": []}]}),
            ));
        }
    };
    let mut run = Execution {
        document: &document,
        variables: body["variables"].clone(),
        req,
        errors: Vec::new(),
    };
    let root = if document.mutation {
        Object::Mutation
    } else {
        Object::Query
    };
    let data = run.select(s, &root, &document.selections, 0)?;
    let mut out = json!({"data": data});
    if !run.errors.is_empty()
        && let Some(map) = out.as_object_mut()
    {
        map.insert("errors".to_owned(), run.errors.into());
    }
    Ok(Answer::ok(&out))
}

impl Execution<'_> {
    fn select(
        &mut self,
        s: &mut State,
        object: &Object,
        selections: &[Selection],
        depth: usize,
    ) -> Result<Value, ApiError> {
        let mut out = Map::new();
        self.select_into(s, object, selections, depth, &mut out)?;
        Ok(Value::Object(out))
    }

    fn select_into(
        &mut self,
        s: &mut State,
        object: &Object,
        selections: &[Selection],
        depth: usize,
        out: &mut Map<String, Value>,
    ) -> Result<(), ApiError> {
        if depth > 32 {
            return Err(ApiError::Status(400, "too deep".to_owned()));
        }
        for selection in selections {
            match selection {
                Selection::Spread(name) => {
                    let inner = self.document.fragments.get(name).cloned().unwrap_or_default();
                    self.select_into(s, object, &inner, depth + 1, out)?;
                }
                Selection::Inline { on, selections } => {
                    let kind = object.kind();
                    // Interfaces that the objects here have.
                    let applies = on.as_ref().is_none_or(|on| {
                        on == kind
                            || matches!(
                                on.as_str(),
                                "Node" | "Comment" | "Minimizable" | "Actor" | "UniformResourceLocatable"
                            )
                    });
                    if applies {
                        self.select_into(s, object, selections, depth + 1, out)?;
                    }
                }
                Selection::Field {
                    alias,
                    name,
                    arguments,
                    selections,
                } => {
                    let arguments: Map<String, Value> = arguments
                        .iter()
                        .map(|(k, v)| (k.clone(), v.value(&self.variables)))
                        .collect();
                    let value = match self.field(s, object, name, &Value::Object(arguments))? {
                        Out::Value(v) => v,
                        Out::Object(o) => self.select(s, &o, selections, depth + 1)?,
                        Out::Objects(list) => {
                            let mut values = Vec::new();
                            for o in &list {
                                values.push(self.select(s, o, selections, depth + 1)?);
                            }
                            values.into()
                        }
                    };
                    out.insert(alias.clone(), value);
                }
            }
        }
        Ok(())
    }

    fn missing(&mut self, what: &str) -> Out {
        self.errors
            .push(json!({"type": "NOT_FOUND", "message": format!("Could not resolve to {what}.")}));
        Out::Value(Value::Null)
    }

    fn field(&mut self, s: &mut State, object: &Object, name: &str, arguments: &Value) -> Result<Out, ApiError> {
        if name == "__typename" {
            return Ok(Out::Value(object.kind().into()));
        }
        let unserved = || ApiError::Unserved;
        let found = match object {
            Object::Query => self.query(s, name, arguments)?,
            Object::Mutation => self.mutate(s, name, arguments)?,
            Object::Repo(repo) => match name {
                "nameWithOwner" => Some(Out::Value(repo.clone().into())),
                "pullRequest" => {
                    let n = arguments["number"].as_u64().unwrap_or(0);
                    let n = super::pulls::find(s, repo, &n.to_string());
                    Some(match n {
                        Ok(n) => Out::Object(Object::Pull(repo.clone(), n)),
                        Err(ApiError::Unknown(fact)) => return Err(ApiError::Unknown(fact)),
                        Err(_) => self.missing("a PullRequest"),
                    })
                }
                _ => None,
            },
            Object::Pull(repo, n) => pull(s, repo, *n, name, arguments)?,
            Object::Comment(..) | Object::Review(..) | Object::ReviewComment(..) => comment(s, object, name),
            Object::Actor(login) => match name {
                "login" => Some(Out::Value(login.trim_end_matches("[bot]").into())),
                "id" => Some(Out::Value(node("U", s.user_id(login)).into())),
                "databaseId" => Some(Out::Value(s.user_id(login).into())),
                "url" => Some(Out::Value(s.web(&format!("/{login}")).into())),
                _ => None,
            },
            Object::Page(nodes, total, next) => match name {
                "nodes" => Some(Out::Objects(nodes.clone())),
                "totalCount" => Some(Out::Value((*total).into())),
                "pageInfo" => Some(Out::Object(Object::PageInfo(next.clone()))),
                _ => None,
            },
            Object::PageInfo(next) => match name {
                "hasNextPage" => Some(Out::Value(next.is_some().into())),
                "endCursor" => Some(Out::Value(next.clone().into())),
                _ => None,
            },
            Object::Minimized(comment) => match name {
                "minimizedComment" | "unminimizedComment" => Some(Out::Object((**comment).clone())),
                "clientMutationId" => Some(Out::Value(Value::Null)),
                _ => None,
            },
            Object::Limit => {
                let rate = s.rate(&self.req.caller);
                match name {
                    "limit" | "remaining" | "used" => Some(Out::Value(rate[name].clone())),
                    "cost" => Some(Out::Value(1.into())),
                    "resetAt" => {
                        let at = rate["reset"]
                            .as_i64()
                            .and_then(|t| chrono::DateTime::from_timestamp(t, 0))
                            .unwrap_or_default();
                        Some(Out::Value(time(at).into()))
                    }
                    _ => None,
                }
            }
        };
        if found.is_none() {
            s.unserved.push(format!("GraphQL {}.{name}", object.kind()));
        }
        found.ok_or_else(unserved)
    }

    fn query(&mut self, s: &mut State, name: &str, arguments: &Value) -> Result<Option<Out>, ApiError> {
        Ok(match name {
            "rateLimit" => Some(Out::Object(Object::Limit)),
            "viewer" => {
                let login = match &self.req.caller {
                    Caller::Person(login) => login.clone(),
                    _ => s.bot(),
                };
                Some(Out::Object(Object::Actor(login)))
            }
            "repository" => {
                let repo = format!(
                    "{}/{}",
                    arguments["owner"].as_str().unwrap_or(""),
                    arguments["name"].as_str().unwrap_or("")
                );
                Some(match s.permit(self.req, &repo, "metadata", Level::Read) {
                    Ok(name) => Out::Object(Object::Repo(name)),
                    Err(_) => self.missing("a Repository"),
                })
            }
            "node" => Some(match find(s, arguments["id"].as_str().unwrap_or("")) {
                Some(object) => Out::Object(object),
                None => self.missing("a node with the global id"),
            }),
            "nodes" => {
                let ids: Vec<String> = arguments["ids"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect();
                if ids.len() > 100 {
                    return Err(ApiError::Status(400, "at most 100 ids".to_owned()));
                }
                let found: Vec<Option<Object>> = ids.iter().map(|id| find(s, id)).collect();
                if found.iter().any(Option::is_none) {
                    // GitHub leaves a null in its place; a list of objects here cannot, so the whole is said to be missing.
                    self.missing("a node with the global id");
                }
                Some(Out::Objects(found.into_iter().flatten().collect()))
            }
            _ => None,
        })
    }

    fn mutate(&mut self, s: &mut State, name: &str, arguments: &Value) -> Result<Option<Out>, ApiError> {
        let input = &arguments["input"];
        let reason = match name {
            "minimizeComment" => Some(input["classifier"].as_str().unwrap_or("OUTDATED").to_ascii_lowercase()),
            "unminimizeComment" => None,
            _ => return Ok(None),
        };
        let id = input["subjectId"].as_str().unwrap_or("");
        let Some(object) = find(s, id) else {
            return Ok(Some(self.missing("a node with the global id")));
        };
        let (Object::Comment(repo, _) | Object::Review(repo, _) | Object::ReviewComment(repo, _)) = &object else {
            return Ok(Some(self.missing("a minimizable comment")));
        };
        if s.permit(self.req, repo, "issues", Level::Write).is_err() {
            self.errors
                .push(json!({"type": "FORBIDDEN", "message": "Resource not accessible by integration"}));
            return Ok(Some(Out::Value(Value::Null)));
        }
        s.minimize(id, reason.as_deref());
        Ok(Some(Out::Object(Object::Minimized(Box::new(object)))))
    }
}

/// The object of a node id.
fn find(s: &State, id: &str) -> Option<Object> {
    let (kind, number) = id
        .split_once('_')
        .and_then(|(k, n)| Some((k, n.parse::<u64>().ok()?)))?;
    s.repos.values().find_map(|r| match kind {
        "IC" if r.comments.contains_key(&number) => Some(Object::Comment(r.name.clone(), number)),
        "PRR" if r.reviews.contains_key(&number) => Some(Object::Review(r.name.clone(), number)),
        "PRRC" if r.review_comments.contains_key(&number) => Some(Object::ReviewComment(r.name.clone(), number)),
        "PR" => r
            .pulls
            .values()
            .find(|p| p.id == number)
            .map(|p| Object::Pull(r.name.clone(), p.number)),
        _ => None,
    })
}

fn pull(s: &mut State, repo: &str, n: u64, name: &str, arguments: &Value) -> Result<Option<Out>, ApiError> {
    let p = s.pull(repo, n)?;
    let value = |v: Value| Ok(Some(Out::Value(v)));
    match name {
        "id" => value(node("PR", p.id).into()),
        "databaseId" => value(p.id.into()),
        "number" => value(n.into()),
        "title" => value(p.title.clone().into()),
        "body" => value(p.body.clone().unwrap_or_default().into()),
        "headRefOid" => value(p.head_sha.clone().into()),
        "headRefName" => value(p.head_ref.clone().into()),
        "baseRefOid" => value(p.base_sha.clone().into()),
        "baseRefName" => value(p.base_ref.clone().into()),
        "isDraft" => value(p.draft.into()),
        "merged" => value(p.merged_at.is_some().into()),
        "mergedAt" => value(p.merged_at.map(time).into()),
        "state" => value(
            match (p.open, p.merged_at.is_some()) {
                (true, _) => "OPEN",
                (false, true) => "MERGED",
                (false, false) => "CLOSED",
            }
            .into(),
        ),
        "author" => Ok(Some(Out::Object(Object::Actor(p.author.clone())))),
        "comments" => {
            known(p.known.comments, || format!("the comments of {repo}#{n}"))?;
            let r = s.repo(repo).ok_or(ApiError::NotFound)?;
            let mut all: Vec<_> = r.comments.values().filter(|c| c.pull == n).collect();
            all.sort_by_key(|c| (c.created_at, c.id));
            let all: Vec<Object> = all.iter().map(|c| Object::Comment(repo.to_owned(), c.id)).collect();
            Ok(Some(Out::Object(page(&all, arguments))))
        }
        "reviews" => {
            known(p.known.reviews, || format!("the reviews of {repo}#{n}"))?;
            let r = s.repo(repo).ok_or(ApiError::NotFound)?;
            let mut all: Vec<_> = r.reviews.values().filter(|c| c.pull == n).collect();
            all.sort_by_key(|c| (c.submitted_at, c.id));
            let all: Vec<Object> = all.iter().map(|c| Object::Review(repo.to_owned(), c.id)).collect();
            Ok(Some(Out::Object(page(&all, arguments))))
        }
        _ => Ok(None),
    }
}

/// The part of a list that `first`, `last` and `after` ask for.
fn page(all: &[Object], arguments: &Value) -> Object {
    let size = |name: &str| arguments[name].as_u64().and_then(|n| usize::try_from(n.min(100)).ok());
    let start = arguments["after"]
        .as_str()
        .and_then(|c| number(c.trim_start_matches("cursor:")).ok());
    let start = usize::try_from(start.unwrap_or(0)).unwrap_or(0).min(all.len());
    if let (Some(last), None) = (size("last"), size("first")) {
        return Object::Page(all[all.len().saturating_sub(last)..].to_vec(), all.len(), None);
    }
    let end = start.saturating_add(size("first").unwrap_or(100)).min(all.len());
    let next = (end < all.len()).then(|| format!("cursor:{end}"));
    Object::Page(all[start..end].to_vec(), all.len(), next)
}

fn comment(s: &State, object: &Object, name: &str) -> Option<Out> {
    struct Common<'a> {
        id: String,
        database: u64,
        author: &'a str,
        body: &'a str,
        created: chrono::DateTime<chrono::Utc>,
        updated: chrono::DateTime<chrono::Utc>,
        edited: Option<&'a Edited>,
        minimized: Option<&'a String>,
        url: Value,
        association: String,
    }
    let common = match object {
        Object::Comment(repo, id) => {
            let c = s.repo(repo)?.comments.get(id)?;
            Common {
                id: node("IC", *id),
                database: *id,
                author: &c.author,
                body: &c.body,
                created: c.created_at,
                updated: c.updated_at,
                edited: c.edited.as_ref(),
                minimized: c.minimized.as_ref(),
                url: s.comment(repo, c)["html_url"].clone(),
                association: s.of(repo, c.association.as_ref(), &c.author),
            }
        }
        Object::Review(repo, id) => {
            let c = s.repo(repo)?.reviews.get(id)?;
            if name == "state" {
                return Some(Out::Value(c.state.to_ascii_uppercase().into()));
            }
            Common {
                id: node("PRR", *id),
                database: *id,
                author: &c.author,
                body: &c.body,
                created: c.submitted_at,
                updated: c.edited.as_ref().map_or(c.submitted_at, |e| e.at),
                edited: c.edited.as_ref(),
                minimized: c.minimized.as_ref(),
                url: s.review(repo, c, true)["html_url"].clone(),
                association: s.of(repo, c.association.as_ref(), &c.author),
            }
        }
        Object::ReviewComment(repo, id) => {
            let c = s.repo(repo)?.review_comments.get(id)?;
            Common {
                id: node("PRRC", *id),
                database: *id,
                author: &c.author,
                body: &c.body,
                created: c.created_at,
                updated: c.updated_at,
                edited: c.edited.as_ref(),
                minimized: c.minimized.as_ref(),
                url: s.review_comment(repo, c)["html_url"].clone(),
                association: s.of(repo, c.association.as_ref(), &c.author),
            }
        }
        _ => return None,
    };
    let value = match name {
        "id" => common.id.into(),
        "databaseId" | "fullDatabaseId" => common.database.into(),
        "author" => return Some(Out::Object(Object::Actor(common.author.to_owned()))),
        "authorAssociation" => common.association.into(),
        "body" => common.body.into(),
        "createdAt" | "publishedAt" | "submittedAt" => time(common.created).into(),
        "updatedAt" => time(common.updated).into(),
        "lastEditedAt" => common.edited.map(|e| time(e.at)).into(),
        "includesCreatedEdit" => common.edited.is_some().into(),
        "editor" => match common.edited {
            Some(e) => return Some(Out::Object(Object::Actor(e.by.clone()))),
            None => Value::Null,
        },
        "isMinimized" => common.minimized.is_some().into(),
        "minimizedReason" => common.minimized.cloned().into(),
        "url" => common.url,
        _ => return None,
    };
    Some(Out::Value(value))
}
