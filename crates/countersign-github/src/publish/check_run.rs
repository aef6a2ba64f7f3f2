//! The check run: known by App, name, head and our key. GitHub takes 50 annotations a request and can only add to them, so
//! where they differ from what is there a new run of the same name takes the old one's place.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Annotation, AnnotationLevel, DesiredCheckRun, PublishedCheckRun};
use crate::calls::Call;
use crate::calls::pages::CheckRuns;
use crate::client::RepoClient;
use crate::error::GitHubError;
use crate::wire;

/// Annotations a request.
const BATCH: usize = 50;
/// GitHub's limit for summary and text, in bytes.
const TEXT: usize = 65_535;
/// Annotations that are published; a reader looks at no more.
const ANNOTATIONS: usize = 500;

/// Makes the check run be there.
///
/// # Errors
/// [`GitHubError`].
pub async fn ensure_check_run(
    repo: &RepoClient,
    wanted: &DesiredCheckRun<'_>,
) -> Result<PublishedCheckRun, GitHubError> {
    let annotations: Vec<Annotation> = wanted.annotations.iter().take(ANNOTATIONS).map(bounded).collect();
    let found = find(repo, wanted).await?;
    if let Some(found) = found {
        let there = annotations_of(repo, &found).await?;
        if annotations.starts_with(&there) {
            if there.len() == annotations.len() && same(&found, wanted) {
                return Ok(PublishedCheckRun {
                    id: found.id,
                    written: false,
                });
            }
            return complete(repo, wanted, found.id, &annotations, there.len()).await;
        }
    }
    let first = annotations.len().min(BATCH);
    let mut body = body(wanted, &annotations[..first]);
    body["name"] = wanted.name.into();
    body["head_sha"] = wanted.head.as_str().into();
    let call = Call::post(repo.path(["check-runs"]), body, format!("check run {}", wanted.name));
    let run: wire::CheckRun = match repo.read(&call).await {
        Ok(run) => run,
        // It may have been made, and only the answer was lost.
        Err(error) if error.is_ambiguous() => match find(repo, wanted).await {
            Ok(Some(found)) if annotations_of(repo, &found).await? == annotations[..first] && same(&found, wanted) => {
                found
            }
            _ => return Err(error),
        },
        Err(error) => return Err(error),
    };
    if first < annotations.len() {
        return complete(repo, wanted, run.id, &annotations, first).await;
    }
    Ok(PublishedCheckRun {
        id: run.id,
        written: true,
    })
}

/// Updates a run and adds the annotations from `there` on. An update that is done twice would add twice, so it is not
/// repeated by itself; the next call finds how far it came.
async fn complete(
    repo: &RepoClient,
    wanted: &DesiredCheckRun<'_>,
    id: u64,
    annotations: &[Annotation],
    there: usize,
) -> Result<PublishedCheckRun, GitHubError> {
    let text = id.to_string();
    let rest = annotations.get(there..).unwrap_or_default();
    let batches: Vec<&[Annotation]> = if rest.is_empty() {
        vec![&[]]
    } else {
        rest.chunks(BATCH).collect()
    };
    for batch in batches {
        let mut call = Call::patch(
            repo.path(["check-runs", &text]),
            body(wanted, batch),
            format!("check run {}", wanted.name),
        );
        call.repeatable = batch.is_empty();
        repo.send(&call).await?;
    }
    Ok(PublishedCheckRun { id, written: true })
}

async fn find(repo: &RepoClient, wanted: &DesiredCheckRun<'_>) -> Result<Option<wire::CheckRun>, GitHubError> {
    let own = repo.hub.identity().await?.id;
    let call = Call::get(
        repo.path(["commits", wanted.head.as_str(), "check-runs"]),
        format!("the check runs of {}", wanted.head.short()),
    )
    .query("check_name", wanted.name)
    .query("filter", "latest");
    let runs = repo.list::<CheckRuns<wire::CheckRun>>(&call).await?;
    Ok(runs
        .into_iter()
        .filter(|run| run.name == wanted.name && run.app.as_ref().is_some_and(|app| app.id == own))
        .filter(|run| run.external_id.as_deref() == Some(wanted.external_id))
        .max_by_key(|run| run.id))
}

/// GitHub fills in fields of its own; only ours are read.
#[derive(Deserialize)]
struct There {
    path: String,
    start_line: u64,
    end_line: u64,
    annotation_level: AnnotationLevel,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    title: Option<String>,
}

async fn annotations_of(repo: &RepoClient, run: &wire::CheckRun) -> Result<Vec<Annotation>, GitHubError> {
    if run.output.as_ref().is_none_or(|output| output.annotations_count == 0) {
        return Ok(Vec::new());
    }
    let id = run.id.to_string();
    let call = Call::get(
        repo.path(["check-runs", &id, "annotations"]),
        format!("the annotations of check run {id}"),
    );
    let there = repo.list::<Vec<There>>(&call).await?;
    Ok(there
        .into_iter()
        .map(|there| Annotation {
            path: there.path,
            start_line: there.start_line,
            end_line: there.end_line,
            level: there.annotation_level,
            message: there.message.unwrap_or_default(),
            title: there.title,
        })
        .collect())
}

fn word(value: impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

fn status(wanted: &DesiredCheckRun<'_>) -> &'static str {
    if wanted.conclusion.is_some() {
        "completed"
    } else {
        "in_progress"
    }
}

fn same(found: &wire::CheckRun, wanted: &DesiredCheckRun<'_>) -> bool {
    let output = found.output.as_ref();
    let text = |text: Option<&String>| text.map(|text| text.trim_end().to_owned()).unwrap_or_default();
    found.status == status(wanted)
        && found.conclusion == wanted.conclusion.and_then(word)
        && text(output.and_then(|output| output.title.as_ref())) == wanted.title.trim_end()
        && text(output.and_then(|output| output.summary.as_ref())) == cut(wanted.summary, TEXT).trim_end()
        && text(output.and_then(|output| output.text.as_ref()))
            == wanted.text.map_or("", |text| cut(text, TEXT)).trim_end()
        && wanted
            .details_url
            .is_none_or(|url| found.details_url.as_deref() == Some(url))
}

fn body(wanted: &DesiredCheckRun<'_>, annotations: &[Annotation]) -> Value {
    let mut output = json!({"title": wanted.title, "summary": cut(wanted.summary, TEXT)});
    if let Some(text) = wanted.text {
        output["text"] = cut(text, TEXT).into();
    }
    if !annotations.is_empty() {
        output["annotations"] = json!(annotations);
    }
    let actions: Vec<Value> = wanted
        .actions
        .iter()
        .take(3)
        .map(|action| {
            let cut = |text: &str, most| text.chars().take(most).collect::<String>();
            json!({"label": cut(&action.label, 20), "description": cut(&action.description, 40), "identifier": cut(&action.identifier, 20)})
        })
        .collect();
    let mut body = json!({
        "external_id": wanted.external_id,
        "status": status(wanted),
        "output": output,
        "actions": actions,
    });
    if let Some(conclusion) = wanted.conclusion.and_then(word) {
        body["conclusion"] = conclusion.into();
    }
    if let Some(url) = wanted.details_url {
        body["details_url"] = url.into();
    }
    body
}

/// An annotation as GitHub takes it: a message is needed, and of 64 KB at most; a title has 255 characters.
fn bounded(annotation: &Annotation) -> Annotation {
    let start = annotation.start_line.max(1);
    Annotation {
        path: annotation.path.clone(),
        start_line: start,
        end_line: annotation.end_line.max(start),
        level: annotation.level,
        message: cut(&annotation.message, 64_000).to_owned(),
        title: annotation.title.as_ref().map(|title| title.chars().take(255).collect()),
    }
}

/// At most so many bytes, between characters.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most.min(text.len()))]
}
