// What came out, in sentences, curves and tables.

import { Chart } from "./charts.js";
import { element } from "./fields.js";
import { lower, percent, upper } from "./numbers.js";

const at = (id) => document.getElementById(id);
const CURVES = [
  { key: "composition", said: "all released", colour: "composition", dash: [7, 4], round: upper },
  { key: "papers", said: "the papers", colour: "papers", dash: [2, 3], round: upper },
  { key: "ours", said: "lastiterate", colour: "ours", width: 3, round: upper },
  { key: "lower", said: "lower bound", colour: "lower", dash: [10, 4, 2, 4], round: lower },
];
const MUCH = 12; // from one curve to another: then the scale is logarithmic
const growthChart = new Chart(at("growth"), 300);
const attackChart = new Chart(at("attack"), 300);
let growth = {};

export function showAnswer({ epsilon, shown, theorem, citation, sentences }) {
  at("epsilon").value = shown;
  at("epsilon").dataset.value = epsilon === null ? "Infinity" : String(epsilon);
  at("theorem").textContent = `by ${theorem}`;
  at("theorem").title = citation;
  at("sentences").replaceChildren(...sentences.map((one) => element("p", {}, together(one))));
  at("trouble").textContent = "";
  stale(false);
}

export const showLower = ({ sentence }) => { at("lower").textContent = together(sentence); };

/** No line ends inside an equation. */
const together = (sentence) => sentence.replace(/([εδ]) ([=≥≤]) /g, "$1\u00a0$2\u00a0");

export function showTrouble(sentence) {
  at("trouble").textContent = sentence;
  at("epsilon").value = "…";
  delete at("epsilon").dataset.value;
  at("theorem").textContent = "";
  at("sentences").replaceChildren();
  at("lower").textContent = at("chance").textContent = "";
  document.body.classList.add("stale");
}

export const stale = (yes) => document.body.classList.toggle("stale", yes);

export function showReport(report) {
  fill("theorems", report.guarantees.map((one) => [upper(one.epsilon, 5), times(one.epsilon, report.epsilon), named(one)]));
  at("theorems").dataset.epsilon = String(report.epsilon);
  at("theorems").dataset.values = JSON.stringify(report.guarantees.map((one) => [one.theorem, one.epsilon]));
  list("assumptions", report.assumed);
  list("described", report.described);
  list("refused", report.refused);
  at("refused-title").textContent = `${report.refused.length} theorems that do not apply`;
}

export function showAlternatives({ sentences }) {
  at("cheaper").hidden = sentences.length === 0;
  at("cheaper").querySelector("ul").replaceChildren(...sentences.map((one) => element("li", {}, one)));
}

const times = (epsilon, best) => (epsilon === best ? "1" : epsilon === null ? "∞" : best > 0 ? (epsilon / best).toPrecision(3) : "∞");
const named = ({ theorem, citation }) => element("span", { title: citation }, theorem, element("small", {}, citation));

function list(id, sentences) {
  at(id).replaceChildren(...sentences.map((one) => element("li", {}, one)));
}

function fill(id, rows) {
  const cells = (row) => row.map((cell, index) => element("td", { className: index < row.length - 1 ? "number" : "" }, cell));
  at(id).tBodies[0].replaceChildren(...rows.map((row) => element("tr", {}, ...cells(row))));
}

/** Curves come in several parts; the first one says where along the run. */
export function showGrowth(part) {
  growth = "along" in part ? { ...part } : { ...growth, ...part };
  const { along, unit } = growth;
  const drawn = CURVES.filter(({ key }) => growth[key]?.some((one) => one !== null));
  const values = drawn.map(({ key, round }) => growth[key].map((one) => (one > 0 || round === upper ? one : null)));
  const all = values.flat().filter((one) => one !== null && one > 0);
  const log = all.length > 0 && Math.max(...all) > MUCH * Math.min(...all);
  growthChart.show([along, ...values], {
    curves: drawn.map(({ colour, dash, width, said, round }) => ({ colour, dash, width, name: (value) => `${said} ${round(value, 3)}` })),
    x: { label: unit, range: along.length > 1 ? undefined : [0, 2 * along[0]] },
    y: { label: "ε", log, range: log ? [Math.min(...all) / 1.2, Math.max(...all) * 1.2] : [0, 1.08 * Math.max(...all, 1e-9)], values: (_, splits) => splits.map((one) => upper(one, 3)) },
    readout: (index) => readGrowth(drawn, index),
  });
  at("growth").setAttribute("aria-label", summary(drawn));
  at("growth-unit").textContent = `ε by number of ${unit}${log ? ", on a logarithmic scale" : ""}`;
  numbers(drawn);
}

function readGrowth(drawn, index) {
  at("growth-readout").textContent = index === null ? "" : `${growth.along[index]} ${growth.unit}: ${each(drawn, index).join(" · ")}`;
}

const each = (drawn, index) => drawn.filter(({ key }) => growth[key][index] !== null).map(({ key, said, round }) => `${said} ${round(growth[key][index])}`);

const summary = (drawn) => `ε after ${growth.along.at(-1)} ${growth.unit}: ${each(drawn, growth.along.length - 1).join(", ")}`;

function numbers(drawn) {
  const head = [growth.unit, ...drawn.map(({ said }) => said)].map((one) => element("th", { scope: "col" }, one));
  at("numbers").tHead.replaceChildren(element("tr", {}, ...head));
  const row = (place, index) => [String(place), ...drawn.map(({ key, round }) => (growth[key][index] === null ? "" : round(growth[key][index], 5)))];
  fill("numbers", growth.along.map((place, index) => [...row(place, index)]));
}

export function showAttack({ false_positive_rates: rates, detection_rates: found, sentence }) {
  at("chance").textContent = together(sentence);
  const inPercent = (_, splits) => splits.map((one) => `${Math.round(100 * one)}%`);
  attackChart.show([rates, rates, found], {
    curves: [
      { colour: "soft", dash: [4, 4], width: 1.5, spot: { text: "guessing", x: 0.5, y: 0.42, right: 6, align: "left" } },
      { colour: "ours", width: 3, fill: "wash", spot: { text: "best attack", ...above(rates, found) } },
    ],
    x: { label: "false-positive rate", values: inPercent, range: [0, 1] },
    y: { label: "largest detection rate", values: inPercent, range: [0, 1] },
    readout: (index) => {
      at("attack-readout").textContent = index === null ? "" : `At a false-positive rate of ${percent(rates[index])}, an attacker detects at most ${percent(found[index])}; guessing detects ${percent(rates[index])}.`;
    },
  });
  at("attack").setAttribute("aria-label", `At a false-positive rate of ${percent(0.01)}, an attacker detects at most ${percent(near(rates, found, 0.01))}.`);
}

/** Beside the curve, on the side where there is room. */
function above(rates, found) {
  const y = near(rates, found, 0.3);
  return y < 0.8 ? { x: 0.03, y: 0.94, right: 0, align: "left" } : { x: 0.97, y: 0.08, right: 0, align: "right" };
}

function near(rates, found, rate) {
  const index = rates.findIndex((one) => one >= rate * (1 - 1e-9));
  return found[index];
}
