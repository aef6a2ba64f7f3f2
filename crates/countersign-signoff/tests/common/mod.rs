//! What the tests share: rules of the shape that a policy would have, and where the real data is.

#![allow(dead_code, unreachable_pub)]

use std::path::PathBuf;

use countersign_signoff::{
    AuthorInfo, CommandRules, DashboardRule, ItemRule, LinkKindRule, LinkRules, Recognition, Refusal, ReuseRule, Rules,
    SignOff, recognise,
};

/// The folder with the real data, or a line that says why the test did nothing.
pub fn shared(what: &str) -> Option<PathBuf> {
    let base = std::env::var_os("COUNTERSIGN_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let path = base.join(what);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {what} is not there (set COUNTERSIGN_SHARED)");
    None
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|s| (*s).to_owned()).collect()
}

fn item(id: &str, anchors: &[&str], must: &[&str], topics: &[&str]) -> ItemRule {
    ItemRule {
        id: id.into(),
        title: String::new(),
        anchors: strings(anchors),
        must: strings(must),
        topics: strings(topics),
    }
}

fn kind(kind: &str, host: &str, path: &str) -> LinkKindRule {
    LinkKindRule {
        kind: kind.into(),
        host: host.into(),
        path: path.into(),
    }
}

/// Rules of the shape of the first home's.
pub fn rules() -> Rules {
    let mut rules = Rules::with_phrase("As a PR reviewer and CODEOWNER");
    rules.reminder_markers = strings(&["<!-- recipe-reminder -->"]);
    rules.verdict_markers = strings(&["<!-- codeowner-signoff-verify"]);
    rules.verdict_headlines = strings(&[
        "## ✅✅✅ **",
        "## ❌❌❌ **",
        "## ⚠️ **",
        "## ⏸️ **",
        "✅✅✅",
        "❌❌❌",
    ]);
    rules.ignored_logins = strings(&["Robo-Account"]);
    rules.detail_headings = strings(&[
        "Additional detail section",
        "Additional details section",
        "Additional details",
    ]);
    rules.placeholders = strings(&["insert any additional info here"]);
    rules.signature_placeholders = strings(&["FILL_IN_GITHUB_USERNAME"]);
    rules.conditional_item_words = strings(&["any of the above criteria", "any criteria"]);
    rules.items = vec![
        item("latest", &["latest version"], &[], &["template", "checklist copy"]),
        item("quality", &["code quality"], &[], &[]),
        item("validation", &["validation"], &[], &["sweep"]),
        item("evals", &["eval"], &[], &["evaluation", "accuracy"]),
        item(
            "chat",
            &["chat templates"],
            &[],
            &["speculative decoding", "spec decode"],
        ),
        item("draft", &["draft as shipped"], &[], &["draft"]),
        item(
            "golden",
            &["golden", "acceptance length"],
            &[],
            &["agentic", "synthetic acceptance"],
        ),
        item("models", &["deprecated"], &[], &["models.md", "deprecation"]),
        item("architecture", &["architecture"], &[], &["hf overrides"]),
        item("images", &["upstream + docker", "docker"], &[], &["image"]),
        item(
            "engine",
            &["additional frameworks", "submitted before", "before additional"],
            &[],
            &["engine first"],
        ),
        item(
            "recipe",
            &["recipe", "cookbook"],
            &[],
            &["recipe", "disagg", "multi node"],
        ),
        item("recipe-opened", &["has been opened"], &[], &["recipe"]),
        item("recipe-merged", &["merged"], &["merged"], &["recipe", "upstream pr"]),
        item("patch", &["waiver", "patch"], &[], &[]),
        item("append", &["append-only"], &[], &[]),
        item("conditional", &["above criteria", "any criteria"], &[], &[]),
    ];
    rules.links = LinkRules {
        forge_hosts: strings(&["github.com"]),
        kinds: vec![
            kind("recipe-pull", "github.com", "/vllm-project/recipes/pull/{number}/**"),
            kind("recipe-pull", "github.com", "/sgl-project/sglang/pull/{number}/**"),
            kind("recipe-page", "recipes.vllm.ai", "/**"),
            kind("recipe-page", "docs.sglang.io", "/cookbook/**"),
        ],
        dashboards: vec![DashboardRule {
            host: "board.example.org".into(),
            param: "unofficialRun".into(),
        }],
    };
    assert_eq!(rules.problems(), []);
    rules
}

/// The commands of the first home.
pub fn command_rules() -> CommandRules {
    let reuse = |name: &str, run_required| ReuseRule {
        name: name.into(),
        run_required,
    };
    let rules = CommandRules {
        reuse: vec![reuse("/reuse-sweep-run", false), reuse("/use", true)],
        app: "/countersign".into(),
    };
    assert_eq!(rules.problems(), []);
    rules
}

pub fn person() -> AuthorInfo {
    AuthorInfo {
        login: "somebody".into(),
        is_bot: false,
        is_self: false,
    }
}

pub fn signoff(body: &str) -> SignOff {
    match recognise(body, &person(), &rules()) {
        Recognition::SignOff(s) => s,
        Recognition::Refused(r) => panic!("{r:?} for {body}"),
    }
}

pub fn refusal(body: &str) -> Refusal {
    match recognise(body, &person(), &rules()) {
        Recognition::SignOff(_) => panic!("a sign-off: {body}"),
        Recognition::Refused(r) => r,
    }
}

/// A made-up template file of the real one's shape: two items that begin alike, a nested one, a conditional one,
/// links in the items, a placeholder in the detail section.
pub const TEMPLATE: &str = r"# Review form

Fill this in before you ask for a merge.

## Template
```
As a PR reviewer and CODEOWNER, I looked at this change and:
- [ ] Took the latest version of [FORM.md](https://github.com/acme/bench/blob/main/docs/FORM.md) as of now
- [ ] Find that the code quality is no worse than it was
- [ ] Saw that the change went through validation. Put the workflow run here.
- [ ] Saw that the change gets through its evals. Put the workflow run here.
- [ ] Saw that speculative runs are driven through chat templates
- [ ] For agentic loads: the acceptance length is the one of the golden curve in [curves/](https://github.com/acme/bench/tree/main/curves), for that model and draft
- [ ] Looked into [MODELS.md](https://github.com/acme/bench/blob/main/MODELS.md): nothing deprecated comes in
- [ ] Saw that no override cuts the model architecture. Faster kernels are fine as long as evals pass
- [ ] Where a vendor calls the open engines first class: the submission runs on upstream https://hub.example.org/u/engine docker images. Exceptions: new hardware and new architectures
- [ ] Where a vendor calls the open engines first class: their submission came before additional frameworks. Exceptions: new hardware and new architectures
- [ ] Find every single-node recipe documented in the [recipes](https://recipes.vllm.ai/) or the [cookbook](https://docs.sglang.io/cookbook/intro):
  - [ ] The upstream change is linked and **MERGED**; an open one does not do
- [ ] Saw that nothing patches the engine, or linked the waiver at [waiver/](https://github.com/acme/bench/tree/main/docs/waiver)`<NUMBER>.md`
- [ ] With `append-only: true`: old points stay as they are
- [ ] If any of the above criteria is not met, the reasons are given below

### Additional detail section:
- insert any additional info here

Signed: `FILL_IN_GITHUB_USERNAME`
```

## Example

- [x] This is not the template.
";

/// The ids of its items.
pub const IDS: [&str; 15] = [
    "latest",
    "quality",
    "validation",
    "evals",
    "chat",
    "golden",
    "models",
    "architecture",
    "images",
    "engine",
    "recipe",
    "recipe-merged",
    "patch",
    "append",
    "conditional",
];

pub fn template() -> countersign_signoff::Template {
    countersign_signoff::Template::parse(TEMPLATE, &rules()).unwrap()
}

/// The template's text with every box ticked, but for items whose line holds one of `open`; the detail section's
/// placeholder replaced.
pub fn filled(open: &[&str], detail: &str) -> String {
    let mut out = String::new();
    for line in template().text.lines() {
        let is_open = open.iter().any(|o| line.contains(o));
        let line = if is_open {
            line.to_owned()
        } else {
            line.replace("- [ ]", "- [x]")
        };
        out.push_str(&line.replace("- insert any additional info here", detail));
        out.push('\n');
    }
    out
}
