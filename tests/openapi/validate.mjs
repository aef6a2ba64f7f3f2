// Asks a running simulator for every endpoint that it serves and validates each answer, and each webhook that it sends, against
// GitHub's published OpenAPI description. Required fields and types are strict; fields that the description does not know are
// allowed, and listed with --verbose. The last line is `N responses validated, M failed`; the exit code is 1 where M is not 0.
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { join } from "node:path";

const option = (name) => {
  const at = process.argv.indexOf(name);
  return at < 0 ? undefined : process.argv[at + 1];
};
const verbose = process.argv.includes("--verbose");
const packages = option("--packages");
const require = createRequire(join(packages, "x.js"));
const Ajv = require("ajv").default;
const addFormats = require("ajv-formats").default;
const file = join(packages, "node_modules/@octokit/openapi/generated/api.github.com.json");
const description = JSON.parse(readFileSync(file, "utf8"));

// OpenAPI 3.0 to JSON Schema: nullable becomes a type, and extra fields are let through.
function convert(node) {
  if (Array.isArray(node)) return node.map(convert);
  if (node === null || typeof node !== "object") return node;
  const out = {};
  for (const [key, value] of Object.entries(node)) {
    if (["example", "examples", "discriminator", "x-github", "externalDocs"].includes(key)) continue;
    // An object that must be empty stays so: it is the other branch of "author or nothing".
    if (key === "additionalProperties" && value === false && node.properties && Object.keys(node.properties).length) continue;
    out[key] = convert(value);
  }
  if (node.nullable === true) {
    delete out.nullable;
    if (typeof out.type === "string") {
      out.type = [out.type, "null"];
      if (out.enum && !out.enum.includes(null)) out.enum = [...out.enum, null];
    } else {
      return { anyOf: [out, { type: "null" }] };
    }
  }
  return out;
}
const ajv = new Ajv({ strict: false, allErrors: true, logger: false, validateFormats: true });
addFormats(ajv);
ajv.addSchema({ $id: "gh", components: { schemas: convert(description.components.schemas) } });
const absolute = (schema) =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"gh#/components/'));
const compiled = new Map();
function validator(key, schema) {
  if (!compiled.has(key)) compiled.set(key, ajv.compile(absolute(convert(schema))));
  return compiled.get(key);
}
const deref = (node) =>
  node?.$ref ? node.$ref.split("/").slice(1).reduce((at, key) => at[key], description) : node;

let passed = 0;
const failures = [];
const seen = new Set();
function judge(what, key, schema, value) {
  const validate = validator(key, schema);
  if (validate(value)) {
    passed += 1;
    if (verbose) for (const field of unknown(schema, value)) console.log(`  unknown to the description: ${what} ${field}`);
    return;
  }
  const errors = (validate.errors ?? []).slice(0, 6).map((e) => `${e.instancePath || "/"} ${e.message}`);
  failures.push(`${what}: ${[...new Set(errors)].join("; ")}`);
}

// Names of fields that no branch of the schema knows, one level after the other.
function unknown(schema, value, at = "", depth = 0) {
  const known = new Map();
  let open = false;
  const collect = (node) => {
    node = deref(node);
    if (!node) return;
    for (const part of [...(node.allOf ?? []), ...(node.anyOf ?? []), ...(node.oneOf ?? [])]) collect(part);
    for (const [name, inner] of Object.entries(node.properties ?? {})) known.set(name, inner);
    if (node.type === "array") known.set("[]", node.items);
    if (node.additionalProperties || (node.type === "object" && !node.properties)) open = true;
  };
  collect(schema);
  if (depth > 4 || value === null || typeof value !== "object") return [];
  if (Array.isArray(value)) return value.length && known.has("[]") ? unknown(known.get("[]"), value[0], `${at}[]`, depth + 1) : [];
  const out = [];
  for (const [name, inner] of Object.entries(value)) {
    if (!known.has(name)) {
      if (!open && known.size) out.push(`${at}.${name}`);
    } else out.push(...unknown(known.get(name), inner, `${at}.${name}`, depth + 1));
  }
  return out;
}

// The simulator, with its rich world.
const server = spawn(option("--server"), [], { stdio: ["pipe", "pipe", "inherit"] });
const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
const hello = JSON.parse((await lines.next()).value);
async function tell(line) {
  server.stdin.write(`${line}\n`);
  const answer = await lines.next();
  if (answer.done) throw new Error(`the simulator ended at: ${line}`);
  return JSON.parse(answer.value);
}
const step = (action) => tell(JSON.stringify(action));

// The description of this list wants an account to be a user and an enterprise at once; that of a single one says "or".
const EXCEPTIONS = {
  "GET /app/installations": { type: "array", items: { $ref: "#/components/schemas/installation" } },
};
const declaredSchema = (content, accept) =>
  (accept?.includes("object") && content["application/vnd.github.object"]?.schema) || content["application/json"]?.schema;

const repo = "octo-org/bench";
const token = hello.tokens[repo];
async function ask(method, template, params, { jwt, body, accept, query, status } = {}) {
  const path = template.replace(/\{(\w+)\}/g, (_, name) =>
    ["path", "ref", "basehead"].includes(name) ? params[name].split("/").map(encodeURIComponent).join("/") : encodeURIComponent(params[name]),
  );
  const response = await fetch(`${hello.base}${path}${query ? `?${query}` : ""}`, {
    method,
    redirect: "manual",
    headers: { authorization: `Bearer ${jwt ? hello.jwt : token}`, ...(accept ? { accept } : {}) },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  const what = `${method} ${path} ${response.status}`;
  seen.add(`${method} ${template}`);
  const operation = description.paths[template]?.[method.toLowerCase()];
  if (!operation) {
    failures.push(`${method} ${template}: not in GitHub's description`);
    return;
  }
  if (status !== undefined && response.status !== status) {
    failures.push(`${what}: expected ${status}: ${text.slice(0, 200)}`);
    return;
  }
  const declared = deref(operation.responses[response.status]);
  if (!declared) {
    // GitHub documents errors unevenly; those that every endpoint may give have the common shape.
    if ([400, 401, 403, 404, 410, 422].includes(response.status)) {
      judge(what, "basic-error", { $ref: "#/components/schemas/basic-error" }, JSON.parse(text));
      return;
    }
    failures.push(`${what}: a status that the description does not have`);
    return;
  }
  const content = declared.content ?? {};
  if (!content["application/json"] && response.status >= 400) {
    // Where the description leaves an error's body out, GitHub sends the common one.
    judge(what, "basic-error", { $ref: "#/components/schemas/basic-error" }, JSON.parse(text));
    return;
  }
  const schema = EXCEPTIONS[`${method} ${template}`] ?? declaredSchema(content, accept);
  if (!schema) {
    if (text.length && response.status !== 302) failures.push(`${what}: a body where the description has none`);
    else passed += 1;
    return;
  }
  const value = JSON.parse(text);
  judge(what, `${method} ${template} ${response.status} ${accept ?? ""}`, schema, value);
  return value;
}

// Webhooks: a receiver that checks the signature and keeps the payloads.
const received = [];
const receiver = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.concat(chunks);
    const signature = `sha256=${createHmac("sha256", hello.webhook_secret).update(body).digest("hex")}`;
    if (request.headers["x-hub-signature-256"] !== signature) failures.push(`webhook ${request.headers["x-github-event"]}: wrong signature`);
    received.push([request.headers["x-github-event"], JSON.parse(body.toString())]);
    response.writeHead(202).end();
  });
});
await new Promise((done) => receiver.listen(0, "127.0.0.1", done));
await tell(`sink http://127.0.0.1:${receiver.address().port}/webhook`);
// Something is delivered before the endpoints are asked, so that the delivery API has what to show.
await tell("timeline");
await tell("deliver");

const R = "/repos/{owner}/{repo}";
const P = { owner: "octo-org", repo: "bench", org: "octo-org" };
const up = { owner: "engine", repo: "recipes" };
const installations = await ask("GET", "/app/installations", {}, { jwt: true, status: 200 });
const installation_id = installations[0].id;
await ask("GET", "/app", {}, { jwt: true, status: 200 });
await ask("GET", "/app", {}, { status: 401 });
await ask("GET", "/app/installations/{installation_id}", { installation_id }, { jwt: true, status: 200 });
await ask("GET", "/app/installations/{installation_id}", { installation_id: 1 }, { jwt: true, status: 404 });
const mint = "/app/installations/{installation_id}/access_tokens";
await ask("POST", mint, { installation_id }, { jwt: true, status: 201 });
await ask("POST", mint, { installation_id }, { jwt: true, status: 201, body: { repositories: ["bench"] } });
await ask("GET", `${R}/installation`, P, { jwt: true, status: 200 });
await ask("GET", "/installation/repositories", {}, { status: 200 });
await ask("GET", "/app/hook/config", {}, { jwt: true, status: 200 });
const deliveries = await ask("GET", "/app/hook/deliveries", {}, { jwt: true, status: 200 });
const delivery_id = deliveries[0].id;
await ask("GET", "/app/hook/deliveries/{delivery_id}", { delivery_id }, { jwt: true, status: 200 });
await ask("POST", "/app/hook/deliveries/{delivery_id}/attempts", { delivery_id }, { jwt: true, status: 202 });
await ask("GET", "/orgs/{org}/members/{username}", { ...P, username: "carol" }, { status: 204 });
await ask("GET", "/orgs/{org}/members/{username}", { ...P, username: "nobody" }, { status: 404 });
const team = { ...P, team_slug: "vendor" };
await ask("GET", "/orgs/{org}/teams/{team_slug}/members", team, { status: 200 });
for (const [username, status] of [["dave", 200], ["erin", 200], ["nobody", 404]])
  await ask("GET", "/orgs/{org}/teams/{team_slug}/memberships/{username}", { ...team, username }, { status });
await ask("GET", "/orgs/{org}/teams/{team_slug}/memberships/{username}", { ...P, team_slug: "hidden", username: "dave" }, { status: 403 });
await ask("GET", "/rate_limit", {}, { status: 200 });
await ask("GET", R, P, { status: 200 });
await ask("GET", R, up, { status: 200 });
await ask("GET", R, { owner: "no", repo: "where" }, { status: 404 });

const pull = await ask("GET", `${R}/pulls/{pull_number}`, { ...P, pull_number: 7 }, { status: 200 });
const sha = pull.head.sha;
for (const pull_number of [8, 5]) await ask("GET", `${R}/pulls/{pull_number}`, { ...P, pull_number }, { status: 200 });
await ask("GET", `${R}/pulls/{pull_number}`, { ...P, pull_number: 99 }, { status: 404 });
await ask("GET", `${R}/pulls/{pull_number}`, { ...up, pull_number: 42 }, { status: 200 });
await ask("GET", `${R}/pulls/{pull_number}/files`, { ...up, pull_number: 42 }, { status: 200 });
await ask("GET", `${R}/pulls`, P, { status: 200, query: "state=all&per_page=2" });
for (const list of ["files", "commits", "reviews", "comments"])
  await ask("GET", `${R}/pulls/{pull_number}/${list}`, { ...P, pull_number: 7 }, { status: 200 });
await ask("GET", `${R}/pulls/{pull_number}/reviews/{review_id}`, { ...P, pull_number: 7, review_id: 601 }, { status: 200 });
await ask("GET", `${R}/pulls/comments/{comment_id}`, { ...P, comment_id: 702 }, { status: 200 });
await ask("PATCH", `${R}/pulls/{pull_number}`, { ...P, pull_number: 7 }, { status: 200, body: { title: "Add one arm" } });

for (const ref of ["main", "arm", sha]) await ask("GET", `${R}/commits/{ref}`, { ...P, ref }, { status: 200 });
await ask("GET", `${R}/commits/{ref}`, { ...P, ref: "f".repeat(40) }, { status: 422 });
await ask("GET", `${R}/commits/{commit_sha}/pulls`, { ...P, commit_sha: sha }, { status: 200 });
await ask("GET", `${R}/compare/{basehead}`, { ...P, basehead: `main...${sha}` }, { status: 200 });
await ask("GET", `${R}/compare/{basehead}`, { ...P, basehead: "main...main" }, { status: 200 });
await ask("GET", `${R}/branches/{branch}`, { ...P, branch: "main" }, { status: 200 });
await ask("GET", `${R}/branches/{branch}`, { ...P, branch: "gone" }, { status: 404 });
await ask("GET", `${R}/git/ref/{ref}`, { ...P, ref: "heads/main" }, { status: 200 });
const tree = await ask("GET", `${R}/git/trees/{tree_sha}`, { ...P, tree_sha: "main" }, { status: 200, query: "recursive=1" });
await ask("GET", `${R}/git/trees/{tree_sha}`, { ...P, tree_sha: tree.sha }, { status: 200 });
await ask("GET", `${R}/git/blobs/{file_sha}`, { ...P, file_sha: tree.tree.find((e) => e.type === "blob").sha }, { status: 200 });
for (const path of ["README.md", "configs", "docs/latest", "logo.png", "big.txt"])
  await ask("GET", `${R}/contents/{path}`, { ...P, path }, { status: 200, query: "ref=main" });
await ask("GET", `${R}/contents/{path}`, { ...P, path: "configs" }, { status: 200, accept: "application/vnd.github.object+json" });
await ask("GET", `${R}/contents/{path}`, { ...P, path: "gone" }, { status: 404 });
await ask("GET", `${R}/tarball/{ref}`, { ...P, ref: "main" }, { status: 302 });
await ask("GET", `${R}/codeowners/errors`, P, { status: 200 });
for (const username of ["olivia", "dave", "erin", "nobody"])
  await ask("GET", `${R}/collaborators/{username}/permission`, { ...P, username }, { status: 200 });

// The head of the runs is the one before the timeline's push.
const runs = await ask("GET", `${R}/actions/runs`, P, { status: 200 });
const run = { ...P, run_id: 9001 };
const swept = runs.workflow_runs.find((r) => r.id === 9001).head_sha;
for (const run_id of [9001, 9002]) await ask("GET", `${R}/actions/runs/{run_id}`, { ...P, run_id }, { status: 200 });
await ask("GET", `${R}/actions/runs/{run_id}/attempts/{attempt_number}`, { ...run, attempt_number: 1 }, { status: 200 });
await ask("GET", `${R}/actions/runs/{run_id}/attempts/{attempt_number}/jobs`, { ...run, attempt_number: 1 }, { status: 200 });
const jobs = await ask("GET", `${R}/actions/runs/{run_id}/jobs`, run, { status: 200, query: "filter=all" });
await ask("GET", `${R}/actions/runs/{run_id}/jobs`, { ...P, run_id: 9002 }, { status: 200 });
await ask("GET", `${R}/actions/jobs/{job_id}`, { ...P, job_id: jobs.jobs[0].id }, { status: 200 });
const artifacts = await ask("GET", `${R}/actions/runs/{run_id}/artifacts`, run, { status: 200 });
for (const [at, status] of [[0, 302], [1, 410]]) {
  const artifact_id = artifacts.artifacts[at].id;
  await ask("GET", `${R}/actions/artifacts/{artifact_id}`, { ...P, artifact_id }, { status: 200 });
  await ask("GET", `${R}/actions/artifacts/{artifact_id}/{archive_format}`, { ...P, artifact_id, archive_format: "zip" }, { status });
}
await ask("GET", `${R}/actions/workflows`, P, { status: 200 });
await ask("GET", `${R}/actions/workflows/{workflow_id}`, { ...P, workflow_id: "sweep.yml" }, { status: 200 });
await ask("GET", `${R}/actions/workflows/{workflow_id}/runs`, { ...P, workflow_id: "sweep.yml" }, { status: 200, query: `head_sha=${swept}` });
for (const query of ["filter=latest", "filter=all&per_page=100"])
  await ask("GET", `${R}/commits/{ref}/check-runs`, { ...P, ref: swept }, { status: 200, query });
for (const list of ["status", "statuses"]) await ask("GET", `${R}/commits/{ref}/${list}`, { ...P, ref: swept }, { status: 200 });

// Writes.
const status = { state: "success", context: "gate", description: "all well", target_url: "https://example.org/1" };
await ask("POST", `${R}/statuses/{sha}`, { ...P, sha }, { status: 201, body: status });
await ask("POST", `${R}/statuses/{sha}`, { ...P, sha }, { status: 422, body: { state: "fine" } });
const check = await ask("POST", `${R}/check-runs`, P, { status: 201, body: { name: "gate", head_sha: sha, status: "in_progress" } });
const annotation = { path: "README.md", start_line: 1, end_line: 1, annotation_level: "warning", message: "m" };
await ask("PATCH", `${R}/check-runs/{check_run_id}`, { ...P, check_run_id: check.id }, {
  status: 200,
  body: { conclusion: "failure", output: { title: "T", summary: "S", text: "X", annotations: [annotation] } },
});
await ask("GET", `${R}/check-runs/{check_run_id}`, { ...P, check_run_id: check.id }, { status: 200 });
await ask("GET", `${R}/check-runs/{check_run_id}/annotations`, { ...P, check_run_id: check.id }, { status: 200 });
const issue = { ...P, issue_number: 7 };
const comment = await ask("POST", `${R}/issues/{issue_number}/comments`, issue, { status: 201, body: { body: "Verdict" } });
await ask("POST", `${R}/issues/{issue_number}/comments`, issue, { status: 422, body: { body: "" } });
await ask("GET", `${R}/issues/{issue_number}/comments`, issue, { status: 200 });
await ask("GET", `${R}/issues/{issue_number}/labels`, issue, { status: 200 });
const comment_id = comment.id;
await ask("GET", `${R}/issues/comments/{comment_id}`, { ...P, comment_id }, { status: 200 });
await ask("PATCH", `${R}/issues/comments/{comment_id}`, { ...P, comment_id }, { status: 200, body: { body: "Verdict 2" } });
const reactions = `${R}/issues/comments/{comment_id}/reactions`;
const reaction = await ask("POST", reactions, { ...P, comment_id }, { status: 201, body: { content: "+1" } });
await ask("POST", reactions, { ...P, comment_id }, { status: 200, body: { content: "+1" } });
await ask("GET", reactions, { ...P, comment_id }, { status: 200 });
await ask("DELETE", `${reactions}/{reaction_id}`, { ...P, comment_id, reaction_id: reaction.id }, { status: 204 });
await ask("DELETE", `${R}/issues/comments/{comment_id}`, { ...P, comment_id }, { status: 204 });

// Each kind of webhook, by a step or by the writes above.
for (const action of [
  { comment: { pull: 7, id: 901, author: "dave", body: "x" } },
  { edit_comment: { id: 901, body: "y", by: "dave" } },
  { delete_comment: { id: 901 } },
  { review: { pull: 7, id: 902, author: "carol", state: "commented", body: "x" } },
  { edit_review: { id: 902, body: "y" } },
  { dismiss_review: { id: 902 } },
  { review_comment: { pull: 7, id: 903, author: "carol", body: "x", path: "README.md" } },
  { edit_review_comment: { id: 903, body: "y" } },
  { delete_review_comment: { id: 903 } },
  { ready: { pull: 8 } },
  { draft: { pull: 8 } },
  { label: { pull: 7, label: "urgent" } },
  { unlabel: { pull: 7, label: "urgent" } },
  { edit_pull: { pull: 7, title: "New", body: "New", base: "arm" } },
  { edit_pull: { pull: 7, base: "main" } },
  { close: { pull: 7 } },
  { reopen: { pull: 7 } },
  { push_branch: { branch: "main", commit: { files: { "new.txt": "x" } } } },
  { open: { pull: { number: 20, title: "Another", author: "dana", head: "arm" } } },
  { run: { id: 904, workflow: "sweep.yml", head: "arm", status: "in_progress", lanes: { eval: { in_progress: 1 } } } },
  { update_run: { id: 904, lanes: { eval: 1 } } },
  { update_run: { id: 904, attempt: 2, status: "in_progress" } },
  { check: { name: "lint", head: "arm", app: "other-app" } },
  { rerequest_check: { name: "gate", pull: 7, by: "dave" } },
  { status: { sha: "arm", context: "ci", state: "success" } },
  { merge_group: { pulls: [7] } },
  { merge: { pull: 7, by: "olivia" } },
  { installation: { action: "suspend" } },
  { installation: { action: "unsuspend" } },
  { installation: { action: "new_permissions_accepted" } },
  { installation: { action: "deleted" } },
  { installation: { action: "created" } },
])
  await step(action);
await tell("deliver");
const events = new Set();
for (const [event, payload] of received) {
  const name = [event, payload.action].filter(Boolean).join("-").replaceAll("_", "-");
  const schema = description["x-webhooks"][name]?.post?.requestBody?.content?.["application/json"]?.schema;
  events.add(name);
  if (!schema) failures.push(`webhook ${name}: not in GitHub's description`);
  else judge(`webhook ${name}`, `webhook ${name}`, schema, payload);
}

for (const [method, template] of hello.endpoints)
  if (!seen.has(`${method} ${template}`)) failures.push(`${method} ${template}: served, but not asked for here`);
const listed = new Set(hello.endpoints.map((e) => e.join(" ")));
for (const what of seen) if (!listed.has(what)) failures.push(`${what}: asked for here, but not in the simulator's list`);
const unserved = await tell("unserved");
for (const what of unserved) failures.push(`${what}: answered with 501`);

server.stdin.end();
receiver.close();
for (const failure of failures) console.log(`FAILED ${failure}`);
console.log(`${hello.endpoints.length} endpoints, ${events.size} kinds of webhook`);
console.log(`${passed} responses validated, ${failures.length} failed`);
process.exit(failures.length ? 1 : 0);
