// The controls of the page, drawn from the run and from the list of kinds that the server knows.

import { choiceField, element, numberField, sliderField, textField, tickField } from "./fields.js";
import { typed } from "./numbers.js";
import { batchSize, noiseSize, withBatches, withEntry, withKind } from "./run.js";

const SECTIONS = { loss: "loss", noise: "noise is added", domain: "projection after each step", optimizer: "optimiser", released: "released" };
const NOUNS = { loss: "loss", batches: "batches", noise: "noise", domain: "projection", optimizer: "optimiser", released: "average" };
const USUAL = { domain: { kind: "unbounded" }, optimizer: { kind: "sgd" }, released: { kind: "last" } };
const OFFERED = ["loss", "batches", "noise", "domain", "optimizer", "released", "step_size", "steps", "weight_decay", "adjacency"];
const NOISE = {
  std: { label: "noise", unit: "standard deviation", least: 1e-5, most: 10 },
  multiplier: { label: "noise multiplier", unit: "standard deviation over clip", least: 0.1, most: 100 },
};
const BATCHES = { poisson: "expected batch size", poisson_mean: "expected batch size", balls_and_bins: "expected batch size" };

/** Draws every control into its place; `change(state)` hears of each new state. */
export class Controls {
  constructor(form, adjacencies, state, change) {
    Object.assign(this, { form, adjacencies, state, change, open: new Set() });
    this.draw();
  }

  /** Another run, or other values, from outside. */
  show(changes) {
    this.state = { ...this.state, ...changes };
    this.draw();
  }

  #set(changes) {
    this.state = { ...this.state, ...changes };
    this.change(this.state);
  }

  #run(changes) {
    this.#set({ run: { ...this.state.run, ...changes } });
  }

  draw() {
    this.#batches();
    for (const section of Object.keys(SECTIONS)) this.#section(section);
    this.#training();
    this.#noise();
    this.#privacy();
    this.#kept();
  }

  #batches() {
    const { batches } = this.state.run;
    const set = (changes) => this.#run({ batches: withBatches(this.state.run.batches, changes) });
    const again = (changes) => { set(changes); this.#batches(); };
    put("records", numberField({ field: "records", label: "records", unit: "count", value: batches.records, change: (records) => again({ records }) }));
    const kinds = this.form.batches.map((one) => ({ value: one.kind, label: one.label }));
    const choice = choiceField({ field: "kind", label: "batches", value: batches.kind, choices: kinds, change: (kind) => again({ kind }) });
    const kind = this.form.batches.find((one) => one.kind === batches.kind);
    put("batches", choice, ...this.#arguments("batches", batches, kind));
    if (batches.kind === "full") return put("batch_size");
    const field = batches.batch_size !== undefined ? "batch_size" : batches.rate !== undefined ? "rate" : "batches";
    const size = batchSize(batches);
    put("batch_size", sliderField({
      field, label: BATCHES[batches.kind] ?? "batch size", unit: "records", value: typeof size === "number" ? typed(size, 8) : size, least: 1,
      most: Math.max(2, batches.records || 2), whole: true, change: (one) => set({ size: one }),
    }));
  }

  #section(section) {
    const before = this.state.run[section] ?? USUAL[section];
    if (typeof before !== "object") return put(section);
    const kinds = this.form[section];
    const kind = kinds.find((one) => one.kind === before.kind);
    const choose = (chosen) => {
      const { run } = this.state;
      const clip = run[section]?.clip ?? run.loss.clip ?? run.noise.clip;
      this.#run({ [section]: withKind({ ...(run[section] ?? USUAL[section]), ...(clip === undefined ? {} : { clip }) }, kinds.find((one) => one.kind === chosen)) });
      if (section === "noise") this.#run({ noise: this.#sized(this.state.run.noise) });
      this.#section(section);
      if (section === "noise") this.#noise();
    };
    const choices = kinds.map((one) => ({ value: one.kind, label: one.label }));
    const choice = choiceField({ field: section, label: SECTIONS[section], value: before.kind, choices, change: choose });
    put(section, choice, ...this.#arguments(section, before, kind));
  }

  /** One input for each argument of the kind. */
  #arguments(section, entries, kind) {
    const set = (name) => (value) => {
      if (name === "clip") return this.#clip(section, value);
      this.#run({ [section]: withEntry(this.state.run[section] ?? USUAL[section], name, value) });
    };
    const made = (one) => {
      const given = { field: one.name, label: one.label, unit: one.unit, value: entries[one.name], change: set(one.name) };
      if (one.yes_or_no) return tickField({ ...given, value: entries[one.name] ?? one.usual });
      if (one.choices) return choiceField({ ...given, unit: "", choices: one.choices.map((value) => ({ value, label: value })) });
      if (one.text) return textField(given);
      const plain = typeof given.value !== "object";
      return numberField({ ...given, optional: !one.needed, value: plain ? given.value : "as in the file", disabled: !plain });
    };
    const asked = kind.arguments.filter((one) => !(section === "batches" && one.name === "last" && !entries.last));
    const [first, more] = [asked.filter((one) => one.needed || entries[one.name] !== undefined), asked.filter((one) => !one.needed && entries[one.name] === undefined)];
    if (more.length === 0) return first.map(made);
    const folded = element("details", { open: this.open.has(section) }, element("summary", {}, `More settings of the ${NOUNS[section]}`), ...more.map(made));
    folded.addEventListener("toggle", () => this.open[folded.open ? "add" : "delete"](section));
    return [...first.map(made), folded];
  }

  /** Loss and noise may both say where gradients are clipped; it is one clip. */
  #clip(section, value) {
    const { loss, noise } = this.state.run;
    const both = { loss, noise, [section]: withEntry(this.state.run[section], "clip", value) };
    const other = section === "loss" ? "noise" : "loss";
    if (both[other].clip !== undefined) both[other] = withEntry(both[other], "clip", value);
    this.#run(both);
    this.#section(other);
  }

  #training() {
    const { run } = this.state;
    put("step_size", sliderField({
      field: "step_size", label: "step size", unit: "length per gradient norm", value: run.step_size, least: 1e-4, most: 10,
      change: (step_size) => this.#run({ step_size }),
    }));
    const epochs = typeof run.steps === "object";
    put("epochs", sliderField({
      field: epochs ? "epochs" : "steps", label: epochs ? "epochs" : "steps", unit: epochs ? "passes over the data" : "count",
      value: epochs ? run.steps.epochs : run.steps, least: 1, most: epochs ? 1000 : 100000, whole: true,
      change: (count) => this.#run({ steps: epochs ? { epochs: count } : count }),
    }));
    put("weight_decay", numberField({
      field: "weight_decay", label: "weight decay", unit: "gradient norm per length", value: run.weight_decay ?? 0,
      change: (weight_decay) => this.#run({ weight_decay: weight_decay ?? 0 }),
    }));
  }

  #noise() {
    const { noise } = this.state.run;
    const name = noiseSize(noise);
    put("noise_size", sliderField({
      field: name, ...NOISE[name], value: noise[name], change: (value) => this.#run({ noise: { ...this.state.run.noise, [name]: value } }),
    }));
  }

  /** Noise of a new kind needs a size, which no argument on the page is. */
  #sized(noise) {
    const name = noise.kind === "on_gradient_sum" ? "multiplier" : "std";
    return { ...noise, [name]: noise[name] ?? (name === "std" ? 0.01 : 1) };
  }

  #privacy() {
    const { run, delta, epsilon } = this.state;
    put("adjacency", choiceField({
      field: "adjacency", label: "neighbouring data sets", value: run.adjacency ?? "replace_one", choices: this.adjacencies,
      change: (adjacency) => this.#run({ adjacency }),
    }));
    put("delta", numberField({ field: "delta", label: "δ", unit: "probability", value: delta, change: (value) => this.#set({ delta: value }) }));
    put("epsilon", sliderField({
      field: "epsilon", label: "target ε", unit: "privacy loss", value: epsilon, least: 0.05, most: 20,
      change: (value) => { this.state = { ...this.state, epsilon: value }; },
    }));
  }

  /** What a file says that no control shows is not lost, and is said. */
  #kept() {
    const names = Object.keys(this.state.run).filter((name) => !OFFERED.includes(name));
    const place = document.getElementById("kept");
    place.hidden = names.length === 0;
    place.textContent = `Kept as in the file: ${names.map((name) => name.replaceAll("_", " ")).join(", ")}.`;
  }
}

/** Whoever is at a control of this place stays there. */
function put(place, ...fields) {
  const slot = document.querySelector(`[data-place="${place}"]`);
  const inputs = () => [...slot.querySelectorAll("input, select")];
  const held = inputs().indexOf(document.activeElement);
  slot.replaceChildren(...fields);
  if (held >= 0) inputs().at(Math.min(held, inputs().length - 1))?.focus();
}
