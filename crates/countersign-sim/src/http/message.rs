//! A request as endpoints see it, and their answer.

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::{Value, json};

use super::auth::Caller;
use crate::git::GitError;

/// A request.
#[derive(Debug)]
pub(crate) struct Req {
    pub(crate) method: Method,
    /// The path below the API's root, not decoded.
    pub(crate) path: String,
    /// Its segments, decoded.
    pub(crate) segments: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    /// The query as it was sent.
    pub(crate) raw_query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) caller: Caller,
}

impl Req {
    /// The first value of a query parameter.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The body as a JSON object.
    pub(crate) fn json(&self) -> Result<Value, ApiError> {
        match serde_json::from_slice(&self.body) {
            Ok(value @ Value::Object(_)) => Ok(value),
            Ok(_) => Err(ApiError::Status(
                422,
                "Invalid request.\n\nFor 'links/0/schema', the body is not an object.".to_owned(),
            )),
            Err(_) => Err(ApiError::Status(400, "Problems parsing JSON".to_owned())),
        }
    }

    /// Whether the caller asks for a media type.
    pub(crate) fn accepts(&self, what: &str) -> bool {
        let accept = self.headers.get("accept").and_then(|v| v.to_str().ok()).unwrap_or("");
        accept.contains(what)
    }

    /// Page number and size, from 1 and at most 100.
    pub(crate) fn page(&self) -> (usize, usize) {
        let number = |name: &str, default: usize| self.param(name).and_then(|v| v.parse().ok()).unwrap_or(default);
        (number("page", 1).max(1), number("per_page", 30).clamp(1, 100))
    }

    /// The part of a list that this request asks for, and the `Link` header that goes with it.
    pub(crate) fn cut<'a, T>(&self, base: &str, all: &'a [T]) -> (&'a [T], Option<String>) {
        let (page, size) = self.page();
        let start = (page - 1).saturating_mul(size).min(all.len());
        let part = &all[start..start.saturating_add(size).min(all.len())];
        let last = all.len().div_ceil(size).max(1);
        let link = |to: usize, rel: &str| {
            let mut query: Vec<(String, String)> = self
                .query
                .iter()
                .filter(|(n, _)| n != "page" && n != "per_page")
                .cloned()
                .collect();
            if self.param("per_page").is_some() {
                query.push(("per_page".to_owned(), size.to_string()));
            }
            query.push(("page".to_owned(), to.to_string()));
            let query: Vec<String> = query
                .iter()
                .map(|(n, v)| format!("{}={}", crate::shapes::encode(n), crate::shapes::encode(v)))
                .collect();
            format!("<{base}{}?{}>; rel=\"{rel}\"", self.path, query.join("&"))
        };
        let mut links = Vec::new();
        if page > 1 {
            links.push(link(page - 1, "prev"));
        }
        if page < last {
            links.push(link(page + 1, "next"));
            links.push(link(last, "last"));
        }
        if page > 1 {
            links.push(link(1, "first"));
        }
        (part, (!links.is_empty()).then(|| links.join(", ")))
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(status: u16, value: &Value) -> Self {
        Answer {
            status,
            headers: vec![("content-type".to_owned(), "application/json; charset=utf-8".to_owned())],
            body: serde_json::to_vec(value).unwrap_or_default(),
        }
    }

    pub(crate) fn ok(value: &Value) -> Self {
        Answer::json(200, value)
    }

    pub(crate) fn empty(status: u16) -> Self {
        Answer {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    pub(crate) fn bytes(content_type: &str, body: Vec<u8>) -> Self {
        Answer {
            status: 200,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body,
        }
    }

    pub(crate) fn redirect(to: String) -> Self {
        Answer {
            status: 302,
            headers: vec![("location".to_owned(), to)],
            body: Vec::new(),
        }
    }

    pub(crate) fn with(mut self, name: &str, value: Option<String>) -> Self {
        if let Some(value) = value {
            self.headers.push((name.to_owned(), value));
        }
        self
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum ApiError {
    /// 404, as GitHub also says to those who may not see a thing.
    NotFound,
    /// A status and GitHub's message.
    Status(u16, String),
    /// 422 for a field.
    Invalid {
        resource: &'static str,
        field: &'static str,
        message: String,
    },
    /// 501: the simulator does not serve this.
    Unserved,
    /// 501: the partial world does not say this.
    Unknown(String),
}

impl ApiError {
    pub(crate) fn forbidden() -> Self {
        ApiError::Status(403, "Resource not accessible by integration".to_owned())
    }

    /// The answer for it.
    pub(crate) fn answer(&self, req: &Req) -> Answer {
        let docs = "https://docs.github.com/rest";
        match self {
            ApiError::NotFound => Answer::json(
                404,
                &json!({"message": "Not Found", "documentation_url": docs, "status": "404"}),
            ),
            ApiError::Status(status, message) => {
                let body = json!({"message": message, "documentation_url": docs, "status": status.to_string()});
                Answer::json(*status, &body)
            }
            ApiError::Invalid {
                resource,
                field,
                message,
            } => {
                let errors = json!([{"resource": resource, "code": "custom", "field": field, "message": message}]);
                let body = json!({"message": "Validation Failed", "errors": errors, "documentation_url": docs, "status": "422"});
                Answer::json(422, &body)
            }
            ApiError::Unserved => {
                let what = format!("{} {}", req.method, req.path);
                Answer::json(
                    501,
                    &json!({"message": format!("the simulated GitHub does not serve {what}"), "unserved": what}),
                )
            }
            ApiError::Unknown(fact) => {
                let message = format!("this partial world does not say: {fact}");
                Answer::json(501, &json!({"message": message, "unknown": fact}))
                    .with("x-sim-unknown", Some(fact.clone()))
            }
        }
    }
}

impl From<GitError> for ApiError {
    fn from(e: GitError) -> Self {
        ApiError::Status(500, format!("simulator: {e}"))
    }
}

impl From<crate::handle::SimError> for ApiError {
    fn from(e: crate::handle::SimError) -> Self {
        match e {
            crate::handle::SimError::NoSuch(_) => ApiError::NotFound,
            other => ApiError::Status(500, format!("simulator: {other}")),
        }
    }
}

/// Decodes percent-encoding; what is not valid is left as it is.
pub(crate) fn decode(text: &str, plus: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let hex = |b: Option<&u8>| b.and_then(|b| (*b as char).to_digit(16));
        match (bytes[i], hex(bytes.get(i + 1)), hex(bytes.get(i + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                i += 3;
                continue;
            }
            (b'+', ..) if plus => out.push(b' '),
            (b, ..) => out.push(b),
        }
        i += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The parameters of a query.
pub(crate) fn query(text: &str) -> Vec<(String, String)> {
    text.split('&')
        .filter(|p| !p.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name, true), decode(value, true))
        })
        .collect()
}
