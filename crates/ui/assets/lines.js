// The graph of live objects, the list of its lines, and the stacks of one line.

let view = null;
/** The key of the line that the user chose; null for none. */
let chosen = null;
/** The index of the series nearest to the pointer. */
let near = null;

/** For the key of each line of the graph: the number of its colour. A line keeps its colour while it is shown. */
const colours = new Map();
const giveColours = (lines) => {
  const keys = new Set(lines.map((line) => line.key));
  for (const key of colours.keys()) if (!keys.has(key)) colours.delete(key);
  const taken = new Set(colours.values());
  for (const { key } of lines) {
    if (colours.has(key)) continue;
    let free = 0;
    while (taken.has(free)) free++;
    colours.set(key, free);
    taken.add(free);
  }
};
const strokeOf = (key) => colourOf(`line-${(colours.get(key) % COLOURS) + 1}`);
const isDashed = (key) => colours.get(key) >= COLOURS;

/** Returns the number of points to request: one for each pixel. */
const pointsOf = (chart) => Math.max(2, chart.host.clientWidth);

const labelOf = (line) => (line.place ? `${line.class} at ${line.place}` : line.class);

/** Sets the window. Ranges of less than 20 ms are ignored. */
const zoomTo = (from, to) => {
  const [low, high] = [Math.max(from, view.first_ms), Math.min(to, view.last_ms)].map(Math.round);
  if (high - low < 20) return;
  shown.window = { from: low, to: high };
  windowChanged();
};

/** Returns the file name of a path, truncated to 24 characters. */
const fileName = (path) => {
  const text = printable(path.split("/").pop());
  return text.length > 24 ? `${text.slice(0, 23)}\u2026` : text;
};

const drawMarks = (plot) => {
  if (!view) return;
  const minor = colourOf("minor");
  const major = colourOf("major");
  for (const c of view.collections) {
    if (c.major) upright(plot, c.ms, { colour: major, dash: [3, 3], width: 1.25 });
    else upright(plot, c.ms, { colour: minor, height: 0.035, width: 1 });
  }
  // Overlapping names of dumps would be unreadable. A dump whose name is left out is in the list of notes and dumps.
  let free = -Infinity;
  const within = view.dumps.filter((d) => d.ms >= view.from_ms && d.ms <= view.to_ms);
  for (const d of within.sort((a, b) => a.ms - b.ms)) {
    const text = fileName(d.text) || "dump";
    const x = plot.valToPos(d.ms, "x");
    const width = 7 * text.length;
    const fits = x - width / 2 > free;
    upright(plot, d.ms, { colour: colourOf("dump"), width: 1.5, text: fits ? text : "" });
    if (fits) free = x + width / 2;
  }
  for (const [letter, ms] of Object.entries(shown.marks)) {
    if (ms !== null) upright(plot, ms, { colour: colourOf("text"), width: 2, text: letter.toUpperCase() });
  }
};

const selects = {
  drag: { x: true, y: false, setScale: false, dist: 4 },
  bind: { dblclick: () => () => resetWindow() },
};
const selected = (plot) => {
  const { left, width } = plot.select;
  if (width < 4) return;
  const [from, to] = [left, left + width].map((p) => plot.posToVal(p, "x"));
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  zoomTo(from, to);
};

const graph = new Chart(byId("graph"), {
  unit: (n) => (shown.measure === "bytes" ? size(n) : grouped(n)),
  bytes: () => shown.measure === "bytes",
  cursor: { ...selects, focus: { prox: 24 }, points: { size: 7 } },
  hooks: {
    drawAxes: [drawMarks],
    setSelect: [selected],
    setCursor: [() => atMoment()],
    setSeries: [(_, index) => (near = index)],
    ready: [
      (plot) =>
        plot.over.addEventListener("click", () => {
          const line = near ? view.lines[near - 1] : null;
          if (line) choose(line.key, true);
        }),
    ],
  },
});
const sizes = { unit: size, cursor: selects };
const heapGraph = new Chart(byId("heap-graph"), { ...sizes, hooks: { setSelect: [selected], drawAxes: [drawMarks] } });
const metaspaceGraph = new Chart(byId("metaspace-graph"), { ...sizes, hooks: { setSelect: [selected] } });
/** A graph of the whole time, in which the window is selected. Dragging selects a new window. */
const overview = new Chart(byId("overview"), {
  unit: size,
  axes: false,
  cursor: {
    drag: { x: true, y: false, setScale: false },
    sync: { key: null },
    bind: { dblclick: () => () => resetWindow() },
  },
  hooks: {
    setSelect: [
      (plot) => {
        if (overview.own) return;
        const { left, width } = plot.select;
        if (width >= 2) zoomTo(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
      },
    ],
  },
});

/** Returns the point under the cursor. If the cursor is outside of the graph, returns the last point. */
const cursorAt = () => graph.plot?.cursor.idx ?? (view ? view.x.length - 1 : -1);

/** Shows the figures at the cursor. */
const atMoment = () => {
  if (!view?.x.length) return;
  const index = cursorAt();
  const ms = view.x[index];
  for (const row of byId("list").tBodies[0].rows) {
    const line = view.lines.find((l) => l.key === row.dataset.key);
    if (line) row.cells[3].textContent = amount(line[shown.measure][index]);
  }
  const before = index > 0 ? view.x[index - 1] : view.from_ms;
  const said = [`${day(ms)} ${clock(ms)}`];
  for (const c of view.collections) {
    if (c.ms <= before || c.ms > ms) continue;
    const kind = c.major ? "full GC" : "GC";
    const times = c.count > 1 ? `${grouped(c.count)} GCs, the longest` : kind;
    const why = [c.collector, c.cause].filter(Boolean).map(printable).join(", ");
    const pause = `${(c.pause_us / 1000).toFixed(1)} ms`;
    said.push(`${times} (${why}): pause ${pause}, ${size(c.before_bytes)} \u2192 ${size(c.after_bytes)}`);
    if (said.length > 3) break;
  }
  byId("moment").textContent = said.join("; ");
};

/** Returns the verdict of a line, and its trend if that adds information. */
const verdictOf = (line) => {
  const trend = line.trend.replace("-", "") === line.verdict ? "" : `, ${line.trend}`;
  return element("span", { class: `taken ${line.verdict}`, "data-pill": line.verdict }, `${line.verdict}${trend}`);
};

/** Describes which figures the verdicts are based on. Each JVM has its own basis. */
const toldFrom = () => {
  if (!view.told.length) return "";
  if (view.told.length > 1) return "Each JVM has its own ranking. Each line shows the worst verdict of all JVMs.";
  const [told] = view.told;
  const counted = (n, what) => `${grouped(n)} ${what}${n === 1 ? "" : "s"}`;
  if (told.basis === "major") return `Compared: live bytes after each of ${counted(told.majors, "full GC")}.`;
  if (told.basis === "collections") {
    const gcs = counted(told.collections, "GC");
    return `Compared: minimum of live bytes between GCs (${gcs}); unreachable old objects may be included.`;
  }
  if (told.basis === "survivors") {
    return "Compared: live objects at the end of the recording, by allocation time; a cache can look like growth.";
  }
  return "Compared: apparently live bytes over time. There was no GC yet, so unreachable objects may be included.";
};

/** Describes when the heap will be full. Empty for several JVMs, or if the window ends before the data does. */
const heapEnd = () => {
  if (view.told.length !== 1 || view.to_ms !== view.last_ms) return "";
  const [{ heap }] = view.told;
  if (heap.bytes_per_hour === null) return "";
  const rate = `Heap after full GCs: ${signedSize(heap.bytes_per_hour)}/h`;
  if (heap.state === "ends") {
    const limit = heap.limit === "container" ? "reaches the container's limit of" : "OutOfMemoryError at";
    const within = `${span(heap.at_ms)} (${span(heap.from_ms)} to ${span(heap.to_ms)})`;
    return `${rate}, ${limit} ${size(heap.limit_bytes)} in ${within}.`;
  }
  if (heap.state === "irregular") return `${rate}, too irregular to estimate the time to OutOfMemoryError.`;
  if (heap.state === "no-limit") return `${rate}; the maximum heap is unknown.`;
  return `${rate}, the heap may have stopped growing, so no time to OutOfMemoryError is estimated.`;
};

const rowOf = (line) => {
  const swatch = element("span", { class: isDashed(line.key) ? "swatch dashed" : "swatch", "aria-hidden": "true" });
  swatch.style.setProperty("--own-line", strokeOf(line.key));
  const button = element("button", { type: "button", class: "line-button" }, name(line.class));
  if (line.place) button.append(element("span", { class: "dim" }, "at ", name(line.place)));
  const row = element(
    "tr",
    { "aria-selected": String(line.key === chosen) },
    element("td", {}, swatch),
    element("td", {}, button),
    element("td", {}, verdictOf(line)),
    ...[0, 1, 2].map(() => element("td", { class: "number" })),
  );
  row.dataset.key = line.key;
  const values = line[shown.measure];
  row.cells[4].textContent = amount(values[values.length - 1] ?? 0);
  row.cells[5].textContent = signedAmount(line[`grown_${shown.measure}`]);
  row.addEventListener("click", () => choose(line.key, true));
  row.addEventListener("pointerenter", () => graph.plot?.setSeries(view.lines.indexOf(line) + 1, { focus: true }));
  return row;
};

const pills = pillBar(byId("pills"), () => {
  for (const row of byId("list").tBodies[0].rows) row.hidden = !pills.fits(row);
});

const listLines = () => {
  const body = byId("list").tBodies[0];
  const focused = body.contains(document.activeElement) ? document.activeElement.closest("tr").dataset.key : null;
  body.replaceChildren(...view.lines.map(rowOf));
  labelCells(byId("list"));
  pills.set([...body.rows]);
  const focusedRow = focused && [...body.rows].find((row) => row.dataset.key === focused);
  focusedRow?.querySelector("button").focus({ preventScroll: true });
  const said = [toldFrom(), heapEnd()].filter(Boolean);
  const more = view.all_lines - view.lines.length;
  if (more > 0) said.push(`${grouped(more)} more lines are not shown.`);
  if (view.lost_samples) {
    const lost = `${grouped(view.lost_samples)} samples in this window, about ${size(view.lost_bytes)}`;
    said.push(`The agent lost ${lost}: figures are too low by this amount.`);
  }
  if (view.odd) said.push(`${grouped(view.odd)} figures in the trace are invalid and count as 0.`);
  if (view.cut) said.push("This window has more data than the page reads; choose a shorter window to see all data.");
  if (!view.lines.length) said.push(view.x.length ? "No sampled object is alive." : "Nothing has been recorded yet.");
  byId("more").textContent = said.join(" ");
};

/** Shows a line at the top of the page, where a phone shows it without scrolling. */
const answerWith = (line) => {
  byId("answer").hidden = !line;
  if (!line) return;
  const button = element("button", { type: "button" }, "Show stacks");
  button.addEventListener("click", () => choose(line.key, true));
  const at = line.place ? [" at ", name(line.place)] : [];
  const grew = element("span", { class: "grown" }, signedAmount(line[`grown_${shown.measure}`]));
  const held = byId("answer").contains(document.activeElement);
  byId("answer").replaceChildren(verdictOf(line), " ", name(line.class), ...at, ": ", grew, " ", button);
  if (held) button.focus({ preventScroll: true });
};

const drawLines = () => {
  giveColours(view.lines);
  const series = view.lines.map((line) => ({
    key: line.key,
    label: labelOf(line),
    colour: strokeOf(line.key),
    dash: isDashed(line.key) ? [6, 4] : undefined,
    width: line.key === chosen ? 3 : 1.5,
    values: line[shown.measure],
  }));
  graph.draw(view.x, series, [view.from_ms, view.to_ms]);
  listLines();
  answerWith(view.lines[0]);
  atMoment();
  const host = byId("graph");
  const top = view.lines[0];
  host.dataset.top = top ? labelOf(top) : "";
  host.dataset.verdict = top ? top.verdict : "";
  host.dataset.points = String(view.x.length);
  host.dataset.collections = String(view.collections.reduce((sum, c) => sum + c.count, 0));
  host.dataset.from = String(view.from_ms);
  host.dataset.to = String(view.to_ms);
  const first = top ? `, first ${printable(labelOf(top))}` : "";
  host.setAttribute("aria-label", `Live objects over time: ${view.lines.length} lines${first}`);
};

const drawHeap = () => {
  const window = [view.from_ms, view.to_ms];
  const several = view.heap.length > 1;
  const dashed = { label: "committed", colour: colourOf("dim"), dash: [4, 4], width: 1 };
  const of = (used, committed) =>
    view.heap.flatMap((h, i) => [
      { key: `u${h.run}`, label: "used", colour: colourOf(`line-${several ? (i % COLOURS) + 1 : 1}`), values: h[used] },
      ...(several ? [] : [{ ...dashed, key: `c${h.run}`, values: h[committed] }]),
    ]);
  heapGraph.draw(view.x, of("used", "committed"), window);
  metaspaceGraph.draw(view.x, of("metaspace_used", "metaspace_committed"), window);
};

/** Draws the used heap over the whole recorded time, and marks the selected time window in it. */
const drawOverview = (whole) => {
  const line = (h, i) => ({ key: h.run, label: "used", colour: colourOf(`line-${i + 1}`), width: 1, values: h.used });
  const series = whole.heap.slice(0, COLOURS).map(line);
  overview.draw(whole.x, series, [whole.first_ms, whole.last_ms]);
  const [left, right] = [view.from_ms, view.to_ms].map((ms) => overview.plot.valToPos(ms, "x"));
  overview.own = true;
  const height = overview.plot.over.clientHeight;
  const width = shown.window ? Math.max(right - left, 2) : 0;
  overview.plot.setSelect({ left: Math.max(left, 0), top: 0, width, height }, false);
  overview.own = false;
};

/** The current flame graph, and the line whose stacks it shows. */
let flame = null;
let flameOf = null;

const flameTree = (data) => {
  const first = (list, make) => make.from([0, ...list]);
  const tree = {
    count: data.depth.length + 1,
    depth: first(data.depth, Int32Array),
    name: first(data.name.map((n) => n + 1), Int32Array),
    values: {
      after: first(data.after, Float64Array),
      grown: first(data.grown, Float64Array),
      shrunk: first(data.shrunk, Float64Array),
    },
    details: (node) => {
      const { after, grown, shrunk } = tree.values;
      const change = signedSize(grown[node] - shrunk[node]);
      return [...tree.kindOf(node), `${size(after[node])} alive at the end, ${change} since the beginning`];
    },
  };
  return completed(withNames(tree, data));
};

/** Shows the stacks of a line, or of a row in the comparison of two moments. */
const showStacks = async (of, window, scroll) => {
  flameOf = { of, window };
  const what = of.place ? [name(of.class), " at ", name(of.place)] : [name(of.class)];
  byId("stacks-of").replaceChildren("Stacks that allocated ", ...what, ": bytes by stack, callers at the top.");
  let data;
  try {
    data = await ask("stacks", {
      runs: shown.run,
      from: window.from,
      to: window.to,
      ...(of.at.length ? { at: of.at.join(",") } : { class: of.class, place: of.place }),
    });
  } catch (error) {
    if (error.name !== "AbortError") fault(error.message);
    return;
  }
  const host = element("div", { class: "flame", id: "flame-graph" });
  const reset = element("button", { type: "button", disabled: "" }, "Reset");
  byId("flame-reset").replaceChildren(reset);
  byId("flame").replaceChildren(host);
  flame = new FlameView(host, flameTree(data), {
    mode: byId("flame-mode").value,
    label: "Live bytes by allocating stack",
    reset,
    content: "allocated class",
    trunks: true,
  });
  byId("flame").dataset.frames = String(data.depth.length);
  flame.find(searched("find-frame"));
  if (scroll) byId("stacks").scrollIntoView({ block: "nearest" });
};

const choose = (key, scroll) => {
  chosen = key;
  drawLines();
  const line = view.lines.find((l) => l.key === key);
  if (line) showStacks(line, { from: view.from_ms, to: view.to_ms }, scroll);
};
