// The page: controls ask, results answer.

import { Asking } from "./asking.js";
import { Controls } from "./controls.js";
import { blame, forgive } from "./fields.js";
import { Plans } from "./plans.js";
import { showAlternatives, showAnswer, showAttack, showGrowth, showLower, showReport, showTrouble, stale } from "./results.js";

const at = (id) => document.getElementById(id);
const PAUSE = 60; // milliseconds without a change before a question is asked
const BAR = 300; // milliseconds before a bar is shown
const STAGES = ["answer", "lower", "attack", "report", "alternatives", "curves", "curves", "curves"];
const SHOW = { answer: showAnswer, lower: showLower, attack: showAttack, report: showReport, alternatives: showAlternatives, curves: showGrowth };
const USUAL_TARGET = 1;

const accounting = new Asking();
const searching = new Asking();
const saving = new Asking();
let waiting = 0;
let bar = 0;
let stage = 0;
let reached = 0;

const started = await (await fetch("start")).json();
const state = { run: started.run, delta: started.delta, epsilon: USUAL_TARGET };
const controls = new Controls(started.form, started.adjacencies, state, changed);
new Plans(() => controls.state, (run) => { controls.show({ run }); changed(); at("bar").scrollIntoView(); });

function changed() {
  stale(true);
  searching.stop();
  clearTimeout(waiting);
  waiting = setTimeout(account, PAUSE);
}

function account() {
  const { run, delta } = controls.state;
  begin();
  accounting.ask({ ask: "account", run, delta }, heard);
}

function heard(part) {
  if ("error" in part) trouble(part);
  else if ("progress" in part) progress(part.progress);
  else if ("part" in part) {
    if (part.part === "answer") forgive();
    stage = Math.max(stage, STAGES.indexOf(part.part)) + 1;
    progress(0);
    SHOW[part.part](part);
  }
  if (part.done) end();
}

function trouble({ error, field }) {
  forgive();
  blame(field, error);
  showTrouble(error);
}

function begin() {
  stage = reached = 0;
  at("progress").removeAttribute("value");
  clearTimeout(bar);
  bar = setTimeout(() => { at("work").hidden = false; }, BAR);
}

/** Nobody knows how long a search takes: its share is null. */
function progress(share) {
  if (share === null) return;
  reached = Math.max(reached, (stage + share) / STAGES.length);
  at("progress").value = Math.min(reached, 1);
}

function end() {
  clearTimeout(bar);
  at("work").hidden = true;
  document.body.dataset.done = String(Number(document.body.dataset.done ?? 0) + 1);
}

at("cancel").addEventListener("click", () => {
  for (const one of [accounting, searching, saving]) one.stop();
  at("found").textContent = "";
  end();
  if (document.body.classList.contains("stale")) at("trouble").textContent = "Cancelled. Change a setting to compute again.";
});

for (const button of document.querySelectorAll("[data-free]")) {
  button.addEventListener("click", () => search(button.dataset.free));
}

function search(free) {
  const { run, delta, epsilon } = controls.state;
  accounting.stop();
  begin();
  stale(true);
  at("found").textContent = "Searching…";
  let found = false;
  searching.ask({ ask: "calibrate", run, delta, epsilon, free }, (part) => {
    if ("error" in part) {
      at("found").textContent = "";
      stale(false);
      forgive();
      if (!blame(part.field, part.error)) at("found").textContent = part.error;
    } else if ("progress" in part) progress(part.progress);
    else if ("run" in part) {
      found = true;
      at("found").textContent = part.sentence;
      controls.show({ run: part.run });
      account();
    }
    if (part.done && !found) end();
  });
}

for (const button of document.querySelectorAll("[data-form]")) {
  button.addEventListener("click", () => save(button.dataset.form));
}

function save(form) {
  const { run, delta } = controls.state;
  begin();
  saving.ask({ ask: "export", run, delta, form }, (part) => {
    if ("error" in part) trouble(part);
    else if ("text" in part) download(part);
    if (part.done) end();
  });
}

function download({ name, text }) {
  const address = URL.createObjectURL(new Blob([text]));
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  URL.revokeObjectURL(address);
}

at("file").addEventListener("change", async () => {
  const [file] = at("file").files;
  if (!file) return;
  stale(true);
  const text = await file.text();
  searching.ask({ ask: "open", name: file.name, text }, (part) => {
    if ("error" in part) {
      stale(false);
      blame("file", part.error);
    } else if ("run" in part) {
      forgive();
      controls.show({ run: part.run });
      changed();
    }
  });
});

at("controls").addEventListener("submit", (event) => event.preventDefault());
account();
