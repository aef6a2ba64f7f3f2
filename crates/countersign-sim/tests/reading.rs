//! Reading: what the world says comes back in GitHub's shapes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Client, REPO, rich, start};
use serde_json::json;

#[tokio::test]
async fn a_pull_request_with_its_files_and_commits() {
    let sim = start(&rich());
    let c = Client::new(&sim);
    let pull = c.get("/pulls/7").await;
    assert_eq!(pull["title"], "Add an arm");
    assert_eq!(pull["head"]["ref"], "arm");
    assert_eq!(pull["head"]["sha"], sim.head(7).unwrap());
    assert_eq!(pull["base"]["ref"], "main");
    assert_eq!(pull["commits"], 2);
    assert_eq!(pull["changed_files"], 2);
    assert_eq!(pull["labels"][0]["name"], "sweep");
    let files = c.get("/pulls/7/files").await;
    let names: Vec<_> = files
        .as_array()
        .unwrap()
        .iter()
        .map(|f| (f["filename"].as_str().unwrap(), f["status"].as_str().unwrap()))
        .collect();
    // The target moved meanwhile (README.md): it is not among the pull request's files.
    assert_eq!(
        names,
        [("configs/vendor-a.yaml", "modified"), ("scripts/serve.sh", "renamed")]
    );
    assert_eq!(
        files[0]["patch"],
        "@@ -1,3 +1,3 @@\n model-a:\n   image: engine/serve:v1\n-  conc: [1, 2]\n+  conc: [1, 2, 4]"
    );
    assert_eq!(files[1]["previous_filename"], "scripts/run.sh");
    let commits = c.get("/pulls/7/commits").await;
    assert_eq!(commits[0]["commit"]["message"], "Add an arm\n\nWith more concurrency.");
    assert_eq!(commits[1]["sha"], pull["head"]["sha"]);
    assert_eq!(commits[1]["author"]["login"], "dana");
    assert_eq!(sim.unserved(), Vec::<String>::new());
}

#[tokio::test]
async fn files_at_revisions() {
    let sim = start(&rich());
    let c = Client::new(&sim);
    let file = c.get("/contents/configs/vendor-a.yaml?ref=main").await;
    assert_eq!(file["type"], "file");
    assert_eq!(file["encoding"], "base64");
    let raw = c
        .call(
            "GET",
            &format!("/repos/{REPO}/contents/configs/vendor-a.yaml?ref=arm"),
            &[("accept", "application/vnd.github.raw+json")],
            None,
        )
        .await;
    assert!(String::from_utf8_lossy(&raw.body).contains("[1, 2, 4]"));
    // Above one megabyte only raw has the content.
    let big = c.get("/contents/big.txt").await;
    assert_eq!((&big["encoding"], &big["content"]), (&json!("none"), &json!("")));
    assert_eq!(big["size"], 17 * 70_000);
    let raw = c
        .call(
            "GET",
            &format!("/repos/{REPO}/contents/big.txt"),
            &[("accept", "application/vnd.github.raw")],
            None,
        )
        .await;
    assert_eq!(raw.body.len(), 17 * 70_000);
    let link = c.get("/contents/docs/latest").await;
    assert_eq!(link["target"], "../README.md");
    let folder = c.get("/contents/configs").await;
    assert_eq!(folder[0]["path"], "configs/vendor-a.yaml");
    let missing = c
        .call("GET", &format!("/repos/{REPO}/contents/nothing"), &[], None)
        .await;
    assert_eq!(missing.status, 404);
    let tree = c.get("/git/trees/main?recursive=1").await;
    let paths: Vec<_> = tree["tree"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["path"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        paths,
        [
            ".github",
            ".github/CODEOWNERS",
            "README.md",
            "big.txt",
            "configs",
            "configs/vendor-a.yaml",
            "docs",
            "docs/latest",
            "logo.png",
            "scripts",
            "scripts/run.sh"
        ]
    );
    let sha = tree["tree"][1]["sha"].as_str().unwrap().to_owned();
    let blob = c.get(&format!("/git/blobs/{sha}")).await;
    assert_eq!(blob["size"], "* @octo-org/core\n/configs/vendor-a.yaml @dave\n".len());
}

#[tokio::test]
async fn runs_jobs_and_checks() {
    let sim = start(&rich());
    let c = Client::new(&sim);
    let head = sim.head(7).unwrap();
    let runs = c
        .get(&format!(
            "/actions/workflows/sweep.yml/runs?head_sha={head}&event=pull_request"
        ))
        .await;
    assert_eq!(runs["total_count"], 1);
    let run = &runs["workflow_runs"][0];
    assert_eq!(
        (&run["id"], &run["run_attempt"], &run["conclusion"]),
        (&json!(9001), &json!(2), &json!("success"))
    );
    assert_eq!(run["pull_requests"][0]["number"], 7);
    assert_eq!(run["path"], ".github/workflows/sweep.yml");
    let names = |v: &serde_json::Value, list: &str| -> Vec<String> {
        v[list]
            .as_array()
            .unwrap()
            .iter()
            .map(|j| format!("{} {}", j["name"].as_str().unwrap(), j["conclusion"].as_str().unwrap()))
            .collect()
    };
    let jobs = c.get("/actions/runs/9001/jobs?per_page=100").await;
    assert_eq!(
        names(&jobs, "jobs"),
        [
            "setup success",
            "agentic / skipped",
            "eval / / c1 first success",
            "eval / / c2 second success",
            "throughput / / c1 success",
            "throughput / / c2 success",
            "throughput / / c3 success",
            "throughput / / c4 success"
        ]
    );
    let all = c.get("/actions/runs/9001/jobs?filter=all&per_page=100").await;
    assert_eq!(all["total_count"], 13);
    let first = c.get("/actions/runs/9001/attempts/1").await;
    assert_eq!(first["conclusion"], "failure");
    let latest = c.get(&format!("/commits/{head}/check-runs?per_page=100")).await;
    // Eight jobs, the lint check, and the lane `eval /` that only the first attempt skipped as a whole.
    assert_eq!(latest["total_count"], 10);
    let every = c
        .get(&format!("/commits/{head}/check-runs?per_page=100&filter=all"))
        .await;
    assert_eq!(every["total_count"], 14);
}

#[tokio::test]
async fn artifacts_are_on_the_other_host_and_want_no_token() {
    let sim = start(&rich());
    let mut c = Client::new(&sim);
    let list = c.get("/actions/runs/9001/artifacts").await;
    let names: Vec<_> = list["artifacts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["eval_results_all", "old-logs", "results"]);
    let id = list["artifacts"][0]["id"].as_u64().unwrap();
    let redirect = c
        .call("GET", &format!("/repos/{REPO}/actions/artifacts/{id}/zip"), &[], None)
        .await;
    assert_eq!(redirect.status, 302);
    let to = redirect.header("location").unwrap().to_owned();
    assert!(to.starts_with(sim.storage_url()));
    assert_eq!(c.call("GET", &to, &[], None).await.status, 400);
    assert_eq!(sim.complaints().len(), 1);
    c.token = None;
    let zip = c.call("GET", &to, &[], None).await;
    let mut zip = zip::ZipArchive::new(std::io::Cursor::new(zip.body.to_vec())).unwrap();
    let rows: serde_json::Value = serde_json::from_reader(zip.by_name("agg_eval_all.json").unwrap()).unwrap();
    assert_eq!(rows[1]["em_strict"], 0.97);
    assert_eq!((&rows[1]["conc"], &rows[1]["n_eff"]), (&json!(2), &json!(1000)));
    let expired = list["artifacts"][1]["id"].as_u64().unwrap();
    let c = Client::new(&sim);
    assert_eq!(
        c.call(
            "GET",
            &format!("/repos/{REPO}/actions/artifacts/{expired}/zip"),
            &[],
            None
        )
        .await
        .status,
        410
    );
}

#[tokio::test]
async fn a_tarball_has_one_folder_and_every_file() {
    let sim = start(&rich());
    let mut c = Client::new(&sim);
    let head = sim.head(7).unwrap();
    let redirect = c.call("GET", &format!("/repos/{REPO}/tarball/{head}"), &[], None).await;
    let to = redirect.header("location").unwrap().to_owned();
    c.token = None;
    let body = c.call("GET", &to, &[], None).await.body;
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(&body[..]));
    let names: Vec<String> = tar
        .entries()
        .unwrap()
        .map(|e| e.unwrap().path().unwrap().display().to_string())
        .collect();
    assert!(names.iter().all(|n| n.starts_with(&format!("octo-org-bench-{head}"))));
    assert!(names.contains(&format!("octo-org-bench-{head}/scripts/serve.sh")));
    assert_eq!(names.len(), 1 + 4 + 7);
}

#[tokio::test]
async fn comparisons() {
    let sim = start(&rich());
    let c = Client::new(&sim);
    let out = c.get("/compare/main...arm").await;
    assert_eq!(out["status"], "diverged");
    assert_eq!(
        (&out["ahead_by"], &out["behind_by"], &out["total_commits"]),
        (&json!(2), &json!(1), &json!(2))
    );
    assert_eq!(out["merge_base_commit"]["commit"]["message"], "First files");
    assert_eq!(out["files"].as_array().unwrap().len(), 2);
    let commit = c.get("/commits/main").await;
    assert_eq!(commit["files"][0]["filename"], "README.md");
    let pulls = c.get(&format!("/commits/{}/pulls", sim.head(7).unwrap())).await;
    assert_eq!(pulls[0]["number"], 7);
    assert_eq!(
        c.call("GET", &format!("/repos/{REPO}/commits/{}", "f".repeat(40)), &[], None)
            .await
            .status,
        422
    );
}

#[tokio::test]
async fn people_and_teams() {
    let sim = start(&rich());
    let c = Client::new(&sim);
    let status = async |path: &str| c.call("GET", path, &[], None).await.status;
    assert_eq!(status("/orgs/octo-org/members/carol").await, 204);
    assert_eq!(status("/orgs/octo-org/members/stranger").await, 404);
    assert_eq!(status("/orgs/octo-org/teams/core/memberships/Carol").await, 200);
    assert_eq!(status("/orgs/octo-org/teams/core/memberships/dave").await, 404);
    assert_eq!(status("/orgs/octo-org/teams/hidden/memberships/dave").await, 403);
    let pending = c
        .call("GET", "/orgs/octo-org/teams/vendor/memberships/erin", &[], None)
        .await
        .json();
    assert_eq!(pending["state"], "pending");
    let role = c.get("/collaborators/dave/permission").await;
    assert_eq!(
        (&role["permission"], &role["role_name"]),
        (&json!("write"), &json!("maintain"))
    );
    let role = c.get("/collaborators/erin/permission").await;
    assert_eq!(
        (&role["permission"], &role["role_name"]),
        (&json!("write"), &json!("release-manager"))
    );
    let nobody = c.get("/collaborators/nobody/permission").await;
    assert_eq!(nobody["permission"], "read");
    let comments = c.get("/issues/7/comments").await;
    assert_eq!(comments[0]["user"]["type"], "Bot");
    assert_eq!(comments[1]["author_association"], "MEMBER");
}

#[tokio::test]
async fn upstream_repositories_and_pages() {
    let sim = start(&rich());
    let mut c = Client::new(&sim);
    let pull = c.call("GET", "/repos/engine/recipes/pulls/42", &[], None).await.json();
    assert_eq!(
        (&pull["merged"], &pull["merged_at"]),
        (&json!(true), &json!("2026-08-06T12:00:00Z"))
    );
    let files = c
        .call("GET", "/repos/engine/recipes/pulls/42/files", &[], None)
        .await
        .json();
    assert_eq!(
        (&files[0]["filename"], &files[0]["additions"]),
        (&json!("docs/model-a.md"), &json!(2))
    );
    let file = c
        .call("GET", "/repos/engine/recipes/contents/docs/model-a.md", &[], None)
        .await;
    assert_eq!(file.status, 200);
    assert_eq!(
        c.call(
            "POST",
            "/repos/engine/recipes/issues/42/comments",
            &[],
            Some(json!({"body": "x"}))
        )
        .await
        .status,
        403
    );
    let origins = sim.page_origins();
    let docs = &origins["https://docs.example.org"];
    c.token = None;
    let page = c.call("GET", &format!("{docs}/model-a"), &[], None).await;
    assert!(String::from_utf8_lossy(&page.body).contains("--tp 4"));
    let old = c.call("GET", &format!("{docs}/old"), &[], None).await;
    assert_eq!(
        (old.status, old.header("location")),
        (302, Some("https://docs.example.org/model-a"))
    );
    assert_eq!(c.call("GET", &format!("{docs}/none"), &[], None).await.status, 404);
}

#[tokio::test]
async fn lists_are_paged_with_links() {
    let sim = start(&rich());
    let c = Client::new(&sim);
    let first = c
        .call(
            "GET",
            &format!("/repos/{REPO}/actions/runs/9001/jobs?per_page=3&filter=latest"),
            &[],
            None,
        )
        .await;
    let link = first.header("link").unwrap();
    let base = sim.base_url();
    assert_eq!(
        link,
        format!(
            "<{base}/repos/{REPO}/actions/runs/9001/jobs?filter=latest&per_page=3&page=2>; rel=\"next\", \
             <{base}/repos/{REPO}/actions/runs/9001/jobs?filter=latest&per_page=3&page=3>; rel=\"last\""
        )
    );
    let last = c
        .call(
            "GET",
            &format!("/repos/{REPO}/actions/runs/9001/jobs?per_page=3&page=3"),
            &[],
            None,
        )
        .await;
    assert_eq!(last.json()["jobs"].as_array().unwrap().len(), 2);
    assert!(!last.header("link").unwrap().contains("next"));
}
