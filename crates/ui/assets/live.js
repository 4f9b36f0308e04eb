// The page as a whole: settings, changes, and updates from a trace that is being written.

let whole = null;

const drawAll = () => {
  if (!view) return;
  drawLines();
  drawHeap();
  if (whole) drawOverview(whole);
};

const recolour = () => {
  for (const chart of [graph, heapGraph, metaspaceGraph, overview]) chart.again();
  drawAll();
  flame?.draw();
};
redraws.push(recolour);

/** Returns the display name of a run. */
const calledRun = (run) => `${run.service ? `${printable(run.service)}: ` : ""}${printable(run.host)} ${run.pid}`;

let runs = [];
const stateOf = (run) => {
  if (run.ended_ms !== null) return `ended ${clock(run.ended_ms)}`;
  if (run.last_ms === null) return "no data yet";
  return `last data ${clock(run.last_ms)}`;
};
const listRuns = (listed) => {
  runs = listed.runs;
  const radio = (key, label, checked) => {
    const input = element("input", { type: "radio", name: "run", "aria-label": label });
    input.checked = checked;
    input.addEventListener("change", () => {
      shown.run = key;
      shown.window = null;
      unmark();
      windowChanged();
    });
    return element("td", {}, input);
  };
  const rows = runs.map((run) =>
    element(
      "tr",
      {},
      radio(run.key, calledRun(run), shown.run === run.key || (shown.run === null && runs.length === 1)),
      element("td", {}, calledRun(run)),
      element("td", {}, name(run.command)),
      element("td", {}, `${day(run.started_ms)} ${clock(run.started_ms)}`),
      element("td", {}, stateOf(run)),
      element("td", {}, `${size(run.heap_used)} of ${size(run.heap_committed)}`),
      element("td", {}, run.interval_bytes ? `one every ${size(run.interval_bytes)}` : "every allocation"),
    ),
  );
  if (runs.length > 1) {
    const more = listed.more ? `; ${grouped(listed.more)} older runs are not listed` : "";
    const all = element("td", { colspan: "6" }, `all ${grouped(runs.length)} together${more}`);
    rows.unshift(element("tr", {}, radio(null, "all together", shown.run === null), all));
  }
  for (const row of rows) {
    row.addEventListener("click", (event) => event.target.tagName === "INPUT" || row.querySelector("input").click());
  }
  const body = byId("runs");
  const focused = [...body.querySelectorAll("input")].indexOf(document.activeElement);
  body.replaceChildren(...rows);
  labelCells(body.parentElement);
  if (focused >= 0) body.querySelectorAll("input")[focused]?.focus({ preventScroll: true });
  fault(listed.traces.map((trace) => trace.fault).filter(Boolean).join("\n"));
  const hunts = runs.filter((run) => run.hunt).map((run) => `${printable(run.hunt.text)} (${clock(run.hunt.time_ms)})`);
  byId("hunt").textContent = hunts.join("; ");
  byId("jvms").dataset.runs = String(runs.length);
};

const listNotes = () => {
  const called = new Map(runs.map((run) => [run.key, calledRun(run)]));
  const said = [
    ...view.notes.map((note) => ({ ...note, kind: "" })),
    ...view.dumps.map((dump) => ({ ...dump, kind: "heap dump " })),
  ].sort((a, b) => b.ms - a.ms);
  const items = said.map((s) => {
    const of = runs.length > 1 ? `${called.get(s.run) ?? s.run}: ` : "";
    return element("li", {}, `${day(s.ms)} ${clock(s.ms)} `, of, s.kind, name(s.text, "span"));
  });
  byId("note-list").replaceChildren(...(items.length ? items : [element("li", {}, "none")]));
};

let busy = false;
let again = false;
let connected = false;
/** True while the user selects a part of a chart. Charts are not redrawn during that time. */
let dragging = false;
for (const host of document.querySelectorAll(".chart")) host.addEventListener("pointerdown", () => (dragging = true));
for (const end of ["pointerup", "pointercancel", "blur"]) window.addEventListener(end, () => (dragging = false));
/** Requests the data that the page shows, and draws it. If an earlier call is still running, starts again after it. */
const refresh = async () => {
  if (busy) {
    again = true;
    return;
  }
  busy = true;
  const begun = performance.now();
  try {
    listRuns(await ask("runs", {}));
    const question = { runs: shown.run, by: shown.by, measure: shown.measure, top: shown.top, points: pointsOf(graph) };
    if (shown.window?.last || shown.window === null || !whole) {
      whole = await ask("overview", { runs: shown.run, points: pointsOf(overview) });
    }
    const answer = await ask("view", { ...question, ...bounds(whole) });
    while (dragging) await new Promise((done) => setTimeout(done, 50));
    view = answer;
    drawAll();
    listNotes();
    await showRates(whole);
    byId("reset").disabled = shown.window === null;
    document.documentElement.dataset.ready ||= String(Math.round(performance.now()));
  } catch (error) {
    if (error.name !== "AbortError") fault(error.message);
  }
  document.documentElement.dataset.answers = String(Number(document.documentElement.dataset.answers || 0) + 1);
  // Requests for a large trace take long. With this pause, requests run for at most a third of the time.
  const rest = Math.max(250, 2 * (performance.now() - begun));
  setTimeout(() => {
    busy = false;
    if (again) {
      again = false;
      refresh();
    }
  }, rest);
  sayState();
};

const sayState = () => {
  const running = runs.some((run) => run.ended_ms === null);
  const live = connected && running && !shown.paused;
  byId("state").className = live ? "live" : "";
  byId("state").textContent = !connected ? "connection lost" : shown.paused ? "paused" : running ? "live" : "finished";
};

const windowChanged = () => {
  const select = byId("window");
  select.value = shown.window === null ? "all" : shown.window.last ? String(shown.window.last) : "fixed";
  byId("reset").disabled = shown.window === null;
  whole = null;
  again = true;
  if (!busy) {
    again = false;
    refresh();
  }
};
const resetWindow = () => {
  shown.window = null;
  windowChanged();
};

for (const id of ["by", "measure", "top"]) {
  byId(id).addEventListener("change", (event) => {
    shown[id] = event.target.value;
    if (id === "by") chosen = null;
    windowChanged();
    if (shown.marks.a !== null && shown.marks.b !== null) compare();
  });
}
byId("window").addEventListener("change", (event) => {
  const { value } = event.target;
  if (value === "fixed") return;
  shown.window = value === "all" ? null : { last: Number(value) };
  windowChanged();
});
byId("reset").addEventListener("click", resetWindow);
byId("pause").addEventListener("click", () => {
  shown.paused = !shown.paused;
  byId("pause").textContent = shown.paused ? "Go on" : "Pause";
  byId("pause").setAttribute("aria-pressed", String(shown.paused));
  sayState();
  if (!shown.paused) refresh();
});
byId("mark-a").addEventListener("click", () => mark("a"));
byId("mark-b").addEventListener("click", () => mark("b"));
byId("unmark").addEventListener("click", unmark);
byId("flame-mode").addEventListener("change", (event) => flame?.setMode(event.target.value));
onSearch("find-frame", (text) => flame?.find(text));

byId("graph").addEventListener("keydown", (event) => {
  if (!view?.x.length || event.ctrlKey || event.metaKey || event.altKey) return;
  const index = cursorAt();
  const zoom = (factor) => {
    const middle = view.x[index];
    zoomTo(middle - (middle - view.from_ms) * factor, middle + (view.to_ms - middle) * factor);
  };
  const chooseBeside = (step) => {
    const at = view.lines.findIndex((line) => line.key === chosen);
    const line = view.lines[Math.min(Math.max(at + step, 0), view.lines.length - 1)];
    if (!line) return;
    chosen = line.key;
    drawLines();
    byId("moment").textContent = `${printable(labelOf(line))}: ${amount(line[shown.measure][index])}`;
  };
  const act = {
    ArrowLeft: () => graph.to(Math.max(index - 1, 0)),
    ArrowRight: () => graph.to(Math.min(index + 1, view.x.length - 1)),
    Home: () => graph.to(0),
    End: () => graph.to(view.x.length - 1),
    ArrowUp: () => chooseBeside(-1),
    ArrowDown: () => chooseBeside(1),
    Enter: () => choose(chosen ?? view.lines[0]?.key, true),
    "+": () => zoom(0.5),
    "-": () => zoom(2),
    Escape: resetWindow,
    a: () => mark("a"),
    A: () => mark("a"),
    b: () => mark("b"),
    B: () => mark("b"),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

const events = new EventSource(new URL("events", location.href));
events.addEventListener("open", () => {
  connected = true;
  sayState();
});
events.addEventListener("error", () => {
  connected = false;
  sayState();
});
events.addEventListener("change", () => {
  if (!shown.paused) refresh();
});
