// The script of the live page: its state, and its requests to the server.

/** The settings of the page. They are not stored. */
const shown = {
  /** The key of the run, or null for all runs. */
  run: null,
  by: "frame",
  measure: "bytes",
  top: 10,
  /** The time window: null for the whole time, {last} for the last milliseconds, or {from, to}. */
  window: null,
  /** The two moments that the user marked for a comparison. */
  marks: { a: null, b: null },
  paused: false,
};

/** The last request of each kind. A newer request of the same kind aborts it. */
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

/** Returns the start and end of the time window as request parameters. */
const bounds = (view) => {
  if (!shown.window) return {};
  if (!shown.window.last) return shown.window;
  return view ? { from: view.last_ms - shown.window.last, to: view.last_ms } : {};
};

/** Labels the cells of a table with its headings, because narrow screens show rows as cards without headings. */
const labelCells = (table) => {
  const headings = [...table.tHead.rows[0].cells].filter((cell) => !cell.hidden);
  for (const row of table.tBodies[0].rows) {
    [...row.cells].forEach((cell, i) => (cell.dataset.label = cell.colSpan > 1 ? "" : headings[i].textContent));
  }
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
/** Formats a time span. */
const span = (ms) => {
  const seconds = Math.abs(ms) / 1000;
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} days`;
};
/** Formats objects or bytes, depending on the chosen measure. */
const amount = (n) => (shown.measure === "bytes" ? size(n) : grouped(n));
const signedAmount = (n) => sign(n) + amount(n);
