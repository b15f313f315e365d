// The run as a plain table, as in a file. What no control touches stays as it was.

/** How many records a batch has, or is expected to have. */
export function batchSize({ records, batch_size, rate, batches, kind }) {
  if (kind === "full") return records;
  if (batch_size !== undefined) return batch_size;
  return rate !== undefined ? rate * records : records / batches;
}

/** The same batches with another number of records, size or kind, in the entries that the kind has. */
export function withBatches(before, { kind = before.kind, records = before.records, size = batchSize(before) }) {
  const sized = { kind, records };
  if (kind === "full") return sized;
  if (kind === "poisson" || kind === "poisson_mean") return { ...sized, rate: share(size, records) };
  if (kind === "balls_and_bins") return { ...sized, batches: whole(records, size) };
  const made = { ...sized, batch_size: typeof size === "number" ? Math.max(1, Math.round(size)) : size };
  if (kind === "fixed_size") return made;
  if (kind === "shuffled" && before.each_epoch !== undefined) made.each_epoch = before.each_epoch;
  if (records % made.batch_size) made.last = before.last ?? "smaller";
  return made;
}

const share = (size, records) => (numbers(size, records) ? size / records : size);
const whole = (records, size) => (numbers(size, records) ? Math.max(1, Math.round(records / size)) : size);
const numbers = (...values) => values.every((one) => typeof one === "number");

/** A section of another kind: entries of the same name stay, and it gets those that it needs. */
export function withKind(before, kind) {
  const made = { kind: kind.kind };
  for (const { name, needed, first } of kind.arguments) {
    if (before?.[name] !== undefined) made[name] = before[name];
    else if (needed) made[name] = first;
  }
  return made;
}

/** Without what was left empty. */
export function withEntry(section, name, value) {
  const { [name]: _, ...others } = section;
  return value === null || value === "" ? others : { ...others, [name]: value };
}

export const noiseSize = (noise) => ("multiplier" in noise ? "multiplier" : "std");
