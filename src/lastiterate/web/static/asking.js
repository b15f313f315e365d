// Questions and their answers, part by part.

async function* partsOf(question, signal) {
  const response = await fetch("ask", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(question),
    signal,
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    const lines = (text + (value ?? "")).split("\n");
    text = lines.pop();
    for (const line of lines) yield JSON.parse(line);
    if (done) {
      if (text) yield JSON.parse(text);
      return;
    }
  }
}

const GONE = { error: "The server does not answer. Check that `lastiterate serve` is still running in its terminal." };

/** One place of the page that asks: a new question ends the one before, whose answer is never heard again. */
export class Asking {
  #running = null;

  /** `hear` is called with every part, and with { done: true } after the last one. */
  async ask(question, hear) {
    this.stop();
    const mine = new AbortController();
    this.#running = mine;
    try {
      for await (const part of partsOf(question, mine.signal)) {
        if (this.#running !== mine) return;
        hear(part);
      }
    } catch (error) {
      if (this.#running === mine && error.name !== "AbortError") hear(GONE);
    }
    if (this.#running === mine) {
      this.#running = null;
      hear({ done: true });
    }
  }

  /** The server hears of it, and stops computing. */
  stop() {
    this.#running?.abort();
    this.#running = null;
  }
}
