//! What people wrote, without what looks like a secret.

use std::collections::BTreeMap;

use countersign_core::evidence::SignoffText;
use countersign_core::{Evidence, Observed, SignoffPlace};
use countersign_sim::World;
use countersign_sim::world::pulls::{CommentSpec, PullSpec, ReviewCommentSpec, ReviewSpec};

use super::gap;

/// Starts of credentials that have a form of their own, with how long what follows is at least.
const STARTS: [(&str, usize); 13] = [
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("ghr_", 30),
    ("github_pat_", 30),
    ("hf_", 30),
    ("sk-", 30),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("AKIA", 16),
    ("glpat-", 20),
    ("nvapi-", 30),
];
const KEY_BEGINS: &str = "-----BEGIN ";
const KEY_ENDS: &str = "-----END ";
const REMOVED: &str = "[secret removed]";

/// Cleans texts, and counts what it took out.
#[derive(Default)]
pub(super) struct Texts {
    pub(super) secrets: usize,
}

impl Texts {
    /// The text without credentials.
    pub(super) fn clean(&mut self, text: &str) -> String {
        let text = self.without_keys(text);
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some((at, length)) = next(rest) {
            out.push_str(&rest[..at]);
            out.push_str(REMOVED);
            self.secrets += 1;
            rest = &rest[at + length..];
        }
        out.push_str(rest);
        out
    }

    /// Private keys go with all their lines.
    fn without_keys(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(begin) = rest.find(KEY_BEGINS) {
            let line_end = rest[begin..].find('\n').map_or(rest.len(), |end| begin + end);
            if !rest[begin..line_end].contains("PRIVATE KEY") {
                out.push_str(&rest[..line_end]);
                rest = &rest[line_end..];
                continue;
            }
            out.push_str(&rest[..begin]);
            out.push_str(REMOVED);
            self.secrets += 1;
            let end = rest[begin..].find(KEY_ENDS).map_or(rest.len(), |end| {
                let end = begin + end;
                rest[end + KEY_ENDS.len()..]
                    .find("-----")
                    .map_or(rest.len(), |close| end + KEY_ENDS.len() + close + 5)
            });
            rest = &rest[end..];
        }
        out.push_str(rest);
        out
    }
}

/// Where the next credential is, and how long.
fn next(text: &str) -> Option<(usize, usize)> {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let found = STARTS.iter().filter_map(|(start, least)| {
        text.match_indices(start).find_map(|(at, _)| {
            let alone = !text[..at].chars().next_back().is_some_and(word);
            let body: usize = text[at + start.len()..]
                .chars()
                .take_while(|c| word(*c))
                .map(char::len_utf8)
                .sum();
            (alone && body >= *least).then_some((at, start.len() + body))
        })
    });
    found.min()
}

/// All accounts that wrote something, and whether they are Apps.
pub(super) fn accounts(evidence: &Evidence) -> BTreeMap<String, bool> {
    let mut out = BTreeMap::from([(evidence.signoff.author.to_string(), evidence.signoff.author_is_bot)]);
    for comment in evidence.comments.present().into_iter().flatten() {
        out.extend(
            comment
                .author
                .as_ref()
                .map(|author| (author.to_string(), comment.author_is_bot)),
        );
    }
    out
}

/// The conversation, and the sign-off in its place.
pub(super) fn conversation(evidence: &Evidence, pull: &mut PullSpec, world: &mut World, texts: &mut Texts) {
    let signoff = &evidence.signoff;
    let mut comments = Vec::new();
    let mut found = false;
    match &evidence.comments {
        Observed::Present(list) => {
            for comment in list {
                let own = signoff.key.place == SignoffPlace::IssueComment && signoff.key.id == comment.id;
                found |= own;
                let mut spec = CommentSpec {
                    id: Some(comment.id),
                    author: comment.author.as_ref().map(ToString::to_string).unwrap_or_default(),
                    association: Some(comment.association.word().to_owned()),
                    body: Some(texts.clean(&comment.body)),
                    created_at: Some(comment.created_at),
                    updated_at: Some(comment.updated_at),
                    ..CommentSpec::default()
                };
                if own {
                    (spec.edited_at, spec.edited_by) = edited(signoff);
                }
                comments.push(spec);
            }
            pull.comments = Some(Vec::new());
        }
        Observed::Absent => pull.comments = Some(Vec::new()),
        Observed::Unavailable(cause) => gap(
            &mut world.unavailable,
            &format!("the comments of {}", number(evidence)),
            cause,
        ),
    }
    let (edited_at, edited_by) = edited(signoff);
    let author = signoff.author.to_string();
    let association = Some(signoff.association.word().to_owned());
    match signoff.key.place {
        SignoffPlace::IssueComment if !found => comments.push(CommentSpec {
            id: Some(signoff.key.id),
            author,
            association,
            body: Some(texts.clean(&signoff.body)),
            created_at: Some(signoff.created_at),
            edited_at,
            edited_by,
            ..CommentSpec::default()
        }),
        SignoffPlace::IssueComment => {}
        SignoffPlace::Review => {
            pull.reviews = Some(vec![ReviewSpec {
                id: Some(signoff.key.id),
                author,
                association,
                body: Some(texts.clean(&signoff.body)),
                submitted_at: Some(signoff.created_at),
                edited_at,
                edited_by,
                ..ReviewSpec::default()
            }]);
        }
        SignoffPlace::ReviewComment => {
            pull.review_comments = Some(vec![ReviewCommentSpec {
                id: Some(signoff.key.id),
                author,
                association,
                body: Some(texts.clean(&signoff.body)),
                created_at: Some(signoff.created_at),
                edited_at,
                edited_by,
                ..ReviewCommentSpec::default()
            }]);
        }
    }
    if !comments.is_empty() {
        pull.comments = Some(comments);
    }
}

fn number(evidence: &Evidence) -> String {
    format!("#{}", evidence.pull_request.number)
}

fn edited(signoff: &SignoffText) -> (Option<chrono::DateTime<chrono::Utc>>, Option<String>) {
    if signoff.updated_at == signoff.created_at && signoff.edited_by_other.is_none() {
        return (None, None);
    }
    let by = signoff.edited_by_other.as_ref().unwrap_or(&signoff.author).to_string();
    (Some(signoff.updated_at), Some(by))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_taken_out_and_all_else_is_kept() {
        let token = format!("ghp_{}", "a1".repeat(18));
        let key = "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----";
        for (text, wanted, count) in [
            (
                format!("see {token}, please"),
                "see [secret removed], please".to_owned(),
                1,
            ),
            (format!("a\n{key}\nb"), "a\n[secret removed]\nb".to_owned(), 1),
            (
                format!("{token} {token}"),
                "[secret removed] [secret removed]".to_owned(),
                2,
            ),
            (
                "x-----BEGIN RSA PRIVATE KEY-----\nand no end".to_owned(),
                "x[secret removed]".to_owned(),
                1,
            ),
            (
                "-----BEGIN CERTIFICATE-----\nabc".to_owned(),
                "-----BEGIN CERTIFICATE-----\nabc".to_owned(),
                0,
            ),
            (
                "ghp_short hf_model sk-learn a_ghp_".to_owned() + &"b".repeat(36),
                "ghp_short hf_model sk-learn a_ghp_".to_owned() + &"b".repeat(36),
                0,
            ),
            ("ünïcödé 中文\r\n".to_owned(), "ünïcödé 中文\r\n".to_owned(), 0),
        ] {
            let mut texts = Texts::default();
            assert_eq!((texts.clean(&text), texts.secrets), (wanted, count), "{text}");
        }
    }
}
