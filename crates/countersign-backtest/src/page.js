"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const form = document.getElementById("filter");
const list = document.getElementById("list");
const rows = Array.from(list.tBodies[0].rows);
const count = document.getElementById("count");
const text = (id) => id < 0 ? "" : data.strings[id];
const words = new Map();

function make(tag, style, content) {
  const made = document.createElement(tag);
  if (style) made.className = style;
  if (content) made.textContent = content;
  return made;
}

function anchor(name, url) {
  if (!url.startsWith("https://")) return make("span", "", name);
  const made = make("a", "", name);
  made.href = url;
  made.rel = "noreferrer";
  return made;
}

function searched(at) {
  if (!words.has(at)) {
    let all = rows[at].textContent;
    for (const row of (data.pulls ? data.pulls[at].rows : [])) {
      all += " " + text(row.why);
      for (const finding of row.findings) all += " " + finding.code + " " + text(finding.message) + " " + text(finding.remedy);
      for (const note of row.notes) all += " " + text(note);
    }
    words.set(at, all.toLowerCase());
  }
  return words.get(at);
}

function detail(at) {
  const cell = make("td");
  cell.colSpan = list.tHead.rows[0].cells.length;
  const pull = data.pulls[at];
  const links = make("div", "quiet");
  for (const [name, url] of pull.links) {
    links.append(anchor(name, url), " · ");
  }
  links.append(text(pull.policy));
  cell.append(links);
  if (pull.problem >= 0) cell.append(make("div", "row F", text(pull.problem)));
  const gravest = [...pull.rows].sort((one, other) => "FQWPUNJ".indexOf(one.letter) - "FQWPUNJ".indexOf(other.letter));
  for (const row of gravest) {
    const box = make("div", "FQW".includes(row.letter) ? "row" : "row calm");
    box.append(make("b", row.letter, row.number + " " + row.slug + " " + row.is + (row.level === "enforce" ? "" : " (" + row.level + ")")));
    box.append(make("span", "why", text(row.why)));
    for (const finding of row.findings) {
      const part = make("div", "finding");
      if (finding.message !== row.why) part.append(make("div", "", text(finding.message)));
      if (finding.place >= 0) part.append(anchor(text(finding.place), text(finding.url)));
      part.append(make("div", "do", text(finding.remedy)));
      if (finding.paste >= 0) part.append(make("pre", "", text(finding.paste)));
      box.append(part);
    }
    for (const note of row.notes) box.append(make("div", "finding quiet", "note: " + text(note)));
    cell.append(box);
  }
  const line = make("tr", "more");
  line.append(cell);
  return line;
}

function toggle(row) {
  if (!data.pulls) return;
  const open = row.nextElementSibling;
  if (open && open.className === "more") {
    open.remove();
  } else {
    row.after(detail(Number(row.dataset.at)));
  }
  row.setAttribute("aria-expanded", String(!(open && open.className === "more")));
}

function matches(row, want) {
  if (want.merged && row.dataset.merged !== want.merged) return false;
  if (want.standing && row.dataset.standing !== want.standing) return false;
  if (want.world && row.dataset.world !== want.world) return false;
  if (want.step && row.dataset.step !== want.step) return false;
  const letters = row.dataset.letters || "";
  if (data.pulls) {
    if (want.check && want.outcome) {
      if (letters[Number(want.check)] !== want.outcome) return false;
    } else if (want.outcome && !letters.includes(want.outcome)) {
      return false;
    } else if (want.check && !"FQWP".includes(letters[Number(want.check)])) {
      return false;
    }
  } else if (want.check && row.dataset.check !== want.check) {
    return false;
  }
  return want.text.every((word) => searched(Number(row.dataset.at)).includes(word));
}

function apply() {
  const given = new FormData(form);
  const want = Object.fromEntries(given);
  want.text = String(want.text || "").toLowerCase().split(/\s+/).filter(Boolean);
  for (const open of list.querySelectorAll("tr.more")) open.remove();
  let shown = 0;
  for (const row of rows) {
    row.hidden = !matches(row, want);
    if (!row.hidden) shown += 1;
  }
  count.textContent = shown + " of " + rows.length;
  const state = new URLSearchParams([...given].filter(([, value]) => value !== ""));
  history.replaceState(null, "", "#" + state);
}

function restore() {
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    if (form.elements[name]) form.elements[name].value = value;
  }
  apply();
}

let waiting;
form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(apply, 120); });
form.addEventListener("submit", (event) => { event.preventDefault(); apply(); });
form.addEventListener("reset", () => setTimeout(apply));
list.addEventListener("click", (event) => {
  if (event.target.closest("a")) return;
  const row = event.target.closest("tr.p");
  if (row) toggle(row);
});
list.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches("tr.p")) toggle(event.target);
});
for (const button of document.querySelectorAll(".summary button")) {
  button.addEventListener("click", () => {
    form.reset();
    for (const [name, value] of Object.entries(button.dataset)) if (form.elements[name]) form.elements[name].value = value;
    apply();
    form.scrollIntoView();
  });
}
restore();
