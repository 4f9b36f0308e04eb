// What is shown, and questions to the server that the page came from.

/** What the page shows; nothing of it is kept beyond the page. */
const shown = {
  /** The run's key; null: all. */
  run: null,
  by: "frame",
  measure: "bytes",
  top: 10,
  /** All of it (null), the last milliseconds ({last}), or from one moment to another ({from, to}). */
  window: null,
  /** The moments that are marked. */
  marks: { a: null, b: null },
  paused: false,
};

/** Asks a question; the newest of each kind counts. */
const asked = new Map();
const ask = async (question, params) => {
  asked.get(question)?.abort();
  const abort = new AbortController();
  asked.set(question, abort);
  const url = new URL(`api/${question}`, location.href);
  for (const [key, value] of Object.entries(params)) {
    if (value !== null && value !== undefined) url.searchParams.set(key, value);
  }
  const response = await fetch(url, { signal: abort.signal, cache: "no-store", credentials: "omit" });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.fault);
  return answer;
};

const fault = (text) => {
  byId("fault").textContent = printable(text);
  byId("fault").hidden = !text;
};

/** The window's bounds as the server takes them. */
const bounds = (view) => {
  if (!shown.window) return {};
  if (!shown.window.last) return shown.window;
  return view ? { from: view.last_ms - shown.window.last, to: view.last_ms } : {};
};

const two = (n) => String(n).padStart(2, "0");
const clock = (ms) => {
  const date = new Date(ms);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
};
const day = (ms) => {
  const date = new Date(ms);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
};
/** A length of time. */
const span = (ms) => {
  const seconds = Math.abs(ms) / 1000;
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} days`;
};
/** Objects or bytes, as is chosen. */
const amount = (n) => (shown.measure === "bytes" ? size(n) : grouped(n));
const signedAmount = (n) => sign(n) + amount(n);
