//! What people wrote: which text is the sign-off, and the conversation.

use countersign_core::evidence::{Association, Comment, SignoffText};
use countersign_core::{Login, Observed, SignoffKey, SignoffPlace};
use countersign_github::ThreadItem;
use countersign_github::gather::wanted;
use countersign_policy::Policy;
use countersign_sim::still::{Fact, Still, StillText, TextPlace};

use crate::WorldsError;
use crate::gaps::Gaps;

/// The account that GitHub shows for one that is gone.
const GHOST: &str = "ghost";

pub(crate) fn association(word: &str) -> Association {
    // An unknown word is read as the one that authorises nothing.
    serde_json::from_value(serde_json::Value::String(word.to_owned())).unwrap_or(Association::None)
}

pub(crate) fn login(text: &str) -> Result<Option<Login>, WorldsError> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| WorldsError::Form {
        at: format!("login `{text}`"),
        why: "not a GitHub login".to_owned(),
    })
}

fn item(text: &StillText) -> Result<ThreadItem, WorldsError> {
    let place = match text.place {
        TextPlace::Comment => SignoffPlace::IssueComment,
        TextPlace::Review => SignoffPlace::Review,
        TextPlace::ReviewComment => SignoffPlace::ReviewComment,
    };
    Ok(ThreadItem {
        key: SignoffKey { place, id: text.id },
        node_id: String::new(),
        author: login(&text.author)?,
        is_bot: text.is_bot,
        association: association(&text.association),
        body: text.body.clone(),
        created_at: text.created_at,
        updated_at: text.updated_at,
        url: text.url.clone(),
        app_id: None,
    })
}

/// The sign-off that is asked for, else the newest of a pull request. What the world does not say of its texts cannot hold
/// one.
pub(crate) fn newest(
    still: &Still,
    repository: &str,
    number: u64,
    asked: Option<&str>,
    policy: &Policy,
) -> Result<Option<(ThreadItem, SignoffText)>, WorldsError> {
    let mut newest: Option<(ThreadItem, SignoffText)> = None;
    for place in [TextPlace::Comment, TextPlace::Review, TextPlace::ReviewComment] {
        let Fact::Known(texts) = still.texts(repository, number, place) else {
            continue;
        };
        for text in &texts {
            let item = item(text)?;
            if asked.is_some_and(|asked| asked != item.key.to_string()) {
                continue;
            }
            // A text that is asked for by name was judged, whatever this policy makes of it.
            if asked.is_some() {
                let signed = signed(&item, text)?;
                return Ok(Some((item, signed)));
            }
            if item.author.is_none() || wanted::signoff(&item, policy).is_none() {
                continue;
            }
            if newest
                .as_ref()
                .is_none_or(|(old, _)| (old.created_at, old.key) < (item.created_at, item.key))
            {
                let signed = signed(&item, text)?;
                newest = Some((item, signed));
            }
        }
    }
    Ok(newest)
}

fn signed(item: &ThreadItem, text: &StillText) -> Result<SignoffText, WorldsError> {
    let ghost = || {
        GHOST.parse::<Login>().map_err(|error| WorldsError::Form {
            at: GHOST.to_owned(),
            why: error.to_string(),
        })
    };
    let author = item.author.clone().map_or_else(ghost, Ok)?;
    let edited_by_other = match &text.edited {
        Some((_, by)) if !author.same(by) => Some(login(by)?.map_or_else(ghost, Ok)?),
        _ => None,
    };
    Ok(SignoffText {
        key: item.key,
        author,
        author_is_bot: item.is_bot,
        association: item.association,
        body: item.body.clone(),
        created_at: item.created_at,
        updated_at: text.edited.as_ref().map_or(item.created_at, |(at, _)| *at),
        edited_by_other,
        url: item.url.clone(),
    })
}

/// A text in the place of a sign-off that is not there.
pub(crate) fn nobody(now: chrono::DateTime<chrono::Utc>, url: &str) -> Result<SignoffText, WorldsError> {
    let author = GHOST.parse().map_err(|_| WorldsError::Form {
        at: GHOST.to_owned(),
        why: "not a login".to_owned(),
    })?;
    Ok(SignoffText {
        key: SignoffKey {
            place: SignoffPlace::IssueComment,
            id: 1,
        },
        author,
        author_is_bot: false,
        association: Association::None,
        body: String::new(),
        created_at: now,
        updated_at: now,
        edited_by_other: None,
        url: url.to_owned(),
    })
}

/// The conversation as evidence has it. A partial world that only gives the sign-off does not say what else was written.
pub(crate) fn comments(
    still: &Still,
    gaps: &Gaps<'_>,
    repository: &str,
    number: u64,
) -> Result<Observed<Vec<Comment>>, WorldsError> {
    let what = format!("the comments of #{number}");
    // What the timeline or a sign-off put there is not all that was written.
    let texts = match gaps
        .known(&what)
        .unwrap_or_else(|| gaps.observed(&what, still.texts(repository, number, TextPlace::Comment)))
    {
        Observed::Present(texts) => texts,
        Observed::Absent => Vec::new(),
        Observed::Unavailable(cause) => return Ok(Observed::Unavailable(cause)),
    };
    let comment = |text: &StillText| -> Result<Comment, WorldsError> {
        Ok(Comment {
            id: text.id,
            author: login(&text.author)?,
            author_is_bot: text.is_bot,
            association: association(&text.association),
            body: text.body.clone(),
            created_at: text.created_at,
            updated_at: text.updated_at,
            url: text.url.clone(),
        })
    };
    texts
        .iter()
        .map(comment)
        .collect::<Result<Vec<_>, _>>()
        .map(Observed::Present)
}
