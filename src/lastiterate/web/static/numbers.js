// Numbers as people read them. Upper bounds are rounded up, lower bounds down.

const DIGITS = 4;

function rounded(value, digits, direction) {
  const near = Number(value.toPrecision(digits));
  if (direction * (near - value) >= 0) return near;
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - digits + 1);
  return Number((near + direction * unit).toPrecision(digits));
}

function text(value) {
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-4 || size >= 1e7) ? value.toExponential() : String(value);
}

/** The server has no infinity in its JSON: null stands for it. */
export const upper = (value, digits = DIGITS) => (value === null ? "∞" : value === 0 ? "0" : text(rounded(value, digits, 1)));
export const lower = (value, digits = DIGITS) => (value === null ? "" : value === 0 ? "0" : text(rounded(value, digits, -1)));

/** To what one would type, for a position of a slider. */
export const typed = (value, digits = 3) => Number(value.toPrecision(digits));

export const percent = (share) => (share === 0 ? "0%" : `${upper(100 * share, 3)}%`);

/** What was typed, as a number where it is one: what is not, the library refuses in its own words. */
export function entered(input) {
  const content = input.trim();
  if (content === "") return null;
  const number = Number(content.replace(/[_\s]/g, ""));
  return Number.isNaN(number) ? content : number;
}

export const shown = (value) => (typeof value === "number" ? text(value) : String(value ?? ""));
