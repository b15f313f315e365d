// Plans for the target, side by side.

import { Asking } from "./asking.js";
import { blame, element, forgive, numberField } from "./fields.js";
import { shown, typed, upper } from "./numbers.js";

const at = (id) => document.getElementById(id);
const USUAL = { features: 20, passes: 250 };

/** `state()` is what the controls say; `use(run)` takes a plan over into them. */
export class Plans {
  #asking = new Asking();
  #wishes = { ...USUAL };

  constructor(state, use) {
    Object.assign(this, { state, use });
    this.#field("features", "features per record", "count");
    this.#field("passes", "passes over the data", "at most");
    at("plan").addEventListener("click", () => this.#ask());
    at("plans-cancel").addEventListener("click", () => { this.#asking.stop(); this.#work(false); });
  }

  #field(field, label, unit) {
    const change = (value) => { this.#wishes[field] = value; };
    document.querySelector(`[data-place="${field}"]`).replaceChildren(numberField({ field, label, unit, value: USUAL[field], change }));
  }

  #ask() {
    const { run, delta, epsilon } = this.state();
    this.#work(true);
    at("plans-trouble").textContent = "";
    this.#asking.ask({ ask: "plan", run, delta, epsilon, ...this.#wishes }, (part) => {
      if ("error" in part) this.#refused(part);
      else if ("plans" in part) this.#show(part);
      else if (part.progress) at("plans-progress").value = part.progress;
      if (part.done) this.#work(false);
    });
  }

  #work(going) {
    at("plans-work").hidden = !going;
    if (going) at("plans-progress").removeAttribute("value");
  }

  #refused({ error, field }) {
    at("plans-note").textContent = "";
    at("plans-found").hidden = true;
    at("advice").replaceChildren();
    forgive();
    if (!blame(field, error)) at("plans-trouble").textContent = error;
  }

  #show({ plans, advice, epsilon }) {
    forgive();
    const rows = plans.map((one, place) => element("tr", {}, ...this.#cells(one, place + 1)));
    at("plans-found").hidden = false;
    at("plans-found").querySelector("tbody").replaceChildren(...rows);
    at("plans-found").dataset.values = JSON.stringify(plans.map((one) => [one.epsilon, one.expected_error]));
    at("plans-note").textContent = `Each plan meets ε = ${shown(epsilon)}. The expected error is computed on a reference problem: use it to compare plans, not to predict the error on your data.`;
    at("advice").replaceChildren(...advice.map((one) => element("li", {}, one)));
  }

  #cells(one, place) {
    const button = element("button", { type: "button", aria: { label: `Use plan ${place}` } }, "Use");
    button.addEventListener("click", () => this.use(one.run));
    const noise = `${one.noise_is === "std" ? "std" : "multiplier"} ${shown(typed(one.noise, 4))}`;
    const seconds = `${shown(typed(one.seconds, 2))} s`;
    const cells = [one.batches, one.epochs, shown(typed(one.step_size)), shown(typed(one.l2, 2)), noise, shown(typed(one.expected_error, 2)), upper(one.composed_epsilon, 3), seconds];
    return [element("td", { title: one.described }, one.called), ...cells.map((cell) => element("td", { className: "number" }, String(cell))), element("td", {}, button)];
  }
}
