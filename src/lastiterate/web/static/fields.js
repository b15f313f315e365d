// Labelled inputs, each with its unit and a place for what is wrong with it.

import { entered, shown, typed } from "./numbers.js";

const STEPS = 400; // of a slider
let count = 0;

export function element(name, properties = {}, ...children) {
  const { dataset = {}, aria = {}, ...rest } = properties;
  const made = Object.assign(document.createElement(name), rest);
  Object.assign(made.dataset, dataset);
  for (const [key, value] of Object.entries(aria)) made.setAttribute(`aria-${key}`, value);
  made.append(...children);
  return made;
}

function labelled(field, label, unit, input, ...before) {
  const id = `field-${(count += 1)}`;
  input.id = id;
  const error = element("p", { className: "error", id: `${id}-error`, dataset: { error: field } });
  input.setAttribute("aria-describedby", error.id);
  const name = element("label", { htmlFor: id }, label, ...(unit ? [" ", element("span", { className: "unit" }, unit)] : []));
  return element("div", { className: "field", dataset: { field } }, name, element("div", { className: "pair" }, ...before, input), error);
}

/** A number, or whatever was typed instead of one; nothing is null. */
export function numberField({ field, label, unit, value, change, optional = false, disabled = false }) {
  const input = element("input", { type: "text", inputMode: "decimal", value: shown(value), disabled, spellcheck: false, placeholder: optional ? "none" : "" });
  input.addEventListener("change", () => change(entered(input.value)));
  return labelled(field, label, unit, input);
}

export function textField({ field, label, unit, value, change }) {
  const input = element("input", { type: "text", value: value ?? "" });
  input.addEventListener("change", () => change(input.value));
  return labelled(field, label, unit, input);
}

/** A number with a slider beside it: from least to most, in equal ratios. What is typed may lie beyond. */
export function sliderField({ field, label, unit, value, least, most, whole = false, change }) {
  const fixed = typeof value !== "number";
  const number = element("input", { type: "text", inputMode: "decimal", value: fixed ? "as in the file" : shown(value), disabled: fixed });
  const slider = element("input", { type: "range", min: 0, max: STEPS, step: 1, disabled: fixed, aria: { label: `${label}, slider` } });
  const span = Math.log(most / least);
  const place = (one) => {
    slider.value = Math.round((STEPS * Math.log(Math.max(one, least) / least)) / span);
    slider.setAttribute("aria-valuetext", `${shown(one)} ${unit}`);
  };
  if (!fixed) place(value);
  slider.addEventListener("input", () => {
    const exact = least * Math.exp((span * slider.value) / STEPS);
    const one = typed(whole ? Math.max(1, Math.round(exact)) : exact);
    number.value = shown(one);
    slider.setAttribute("aria-valuetext", `${shown(one)} ${unit}`);
    change(one);
  });
  number.addEventListener("change", () => {
    const one = entered(number.value);
    if (typeof one === "number" && one > 0) place(one);
    change(one);
  });
  return labelled(field, label, unit, number, slider);
}

export function choiceField({ field, label, unit, value, choices, change }) {
  const options = choices.map((one) => element("option", { value: one.value, selected: one.value === value }, one.label));
  const select = element("select", {}, ...options);
  select.addEventListener("change", () => change(select.value));
  return labelled(field, label, unit, select);
}

export function tickField({ field, label, value, change }) {
  const input = element("input", { type: "checkbox", checked: Boolean(value) });
  input.addEventListener("change", () => change(input.checked));
  const made = labelled(field, label, "", input);
  made.classList.add("tick");
  return made;
}

/** Beside the field that is to blame; false if the page has no such field. */
export function blame(field, sentence) {
  const place = field && document.querySelector(`[data-error="${CSS.escape(field)}"]`);
  if (!place) return false;
  place.textContent = sentence;
  place.closest("[data-field]")?.querySelector(".pair > :last-child")?.setAttribute("aria-invalid", "true");
  place.closest("details")?.setAttribute("open", "");
  return true;
}

export function forgive() {
  for (const place of document.querySelectorAll("[data-error]")) place.textContent = "";
  for (const input of document.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
}
