// The list of suspects. The details of a suspect are created when it is opened.

const VERDICTS = { leak: "leak", growth: "growth", cache: "cache", warmup: "warm-up" };

/** Number of suspects shown at first. */
const FIRST = 25;

const series = (list, shown) => list.map(shown).join(" \u2192 ");

/** Returns one stack. `figures` is a sentence with the figures of the stack. */
const stackView = (stack, figures) => {
  const frames = element("ol", { class: "frames" });
  frames.append(...framesView(stack.frames));
  if (!stack.frames.length) frames.append(element("li", { class: "runtime" }, sentences.no_stack));
  const about = element("p", {}, name(stack.class), element("span", { class: "dim" }, `  ${figures}`));
  return element("div", { class: "stack" }, about, frames);
};

const fact = (list, label, ...values) =>
  list.append(element("dt", {}, label), ...values.map((value) => element("dd", {}, value)));

/**
 * Returns the history from a trace as a line chart. Each point is the minimum of the live bytes in one part of the
 * time. `rate` is the sentence about the growth per hour.
 */
const historyChart = ({ series: { time_ms, live_bytes }, began_ms, began_within }, rate) => {
  const [width, height] = [480, 60];
  const most = Math.max(1, ...live_bytes);
  const [from, to] = [time_ms[0], time_ms.at(-1)];
  const x = (ms) => ((ms - from) / Math.max(1, to - from)) * width;
  const drawn = (tag, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const label = `Live bytes over time: ${rate}`;
  const box = { viewBox: `0 -2 ${width} ${height + 4}`, width, height };
  const chart = drawn("svg", { ...box, role: "img", "aria-label": label });
  const point = (bytes, i) => `${x(time_ms[i]).toFixed(1)},${(height - (bytes / most) * height).toFixed(1)}`;
  const points = live_bytes.map(point).join(" ");
  const line = { fill: "none", stroke: "currentColor", "stroke-width": "1.5" };
  chart.append(drawn("polyline", { ...line, points }));
  if (began_within && began_ms >= from) {
    const at = x(began_ms).toFixed(1);
    const began = { x1: at, x2: at, y1: 0, y2: height, stroke: "currentColor", "stroke-dasharray": "3 3" };
    chart.append(drawn("line", began));
  }
  return chart;
};

/**
 * Returns the details of a suspect. `said` contains the path of the suspect and the sentences about it. All formats of
 * the report have the same sentences.
 */
const suspectDetails = (suspect, said) => {
  const facts = element("dl");
  const retained = series(suspect.retained_bytes, size);
  fact(facts, "class", name(suspect.class));
  fact(facts, "objects", `${series(suspect.objects, grouped)}, which retain ${retained}`);
  if (suspect.off_heap_bytes?.length) fact(facts, "off heap", series(suspect.off_heap_bytes, size));
  const path = element("ol", { class: "path" });
  said.path.forEach((step, i) => {
    path.append(element("li", i === said.holder ? { class: "holder" } : {}, name(step)));
  });
  fact(facts, "path", path);
  fact(facts, "why", ...suspect.reasons.map(printable));
  if (said.rate) {
    const chart = suspect.history.series.time_ms.length ? [historyChart(suspect.history, said.rate)] : [];
    fact(facts, "history", ...chart, said.rate);
  }
  if (said.began) fact(facts, "since", said.began);
  const through = suspect.allocated_through;
  if (through) fact(facts, "through", name(through.frame), said.through);
  // If no stack of the suspect's own objects is known, show stacks that allocated objects of its class, dead or alive.
  const { stacks, allocated_at = [] } = suspect;
  const listed = stacks.length ? stacks : allocated_at.map(({ frames }) => ({ class: suspect.class, frames }));
  const showStacks = () => {
    if (listed.length) fact(facts, "from", ...listed.map((stack, i) => stackView(stack, said.stacks[i])));
  };
  if (stacks.length) showStacks();
  for (const [label, sentence] of said.evidence) fact(facts, label, sentence);
  if (!stacks.length) showStacks();
  if (suspect.work) fact(facts, "work", printable(suspect.work));
  if (said.known) fact(facts, "known", said.known, printable(suspect.known.link));
  if (suspect.likely_fix) fact(facts, "fix", printable(suspect.likely_fix));
  const next = suspect.next ?? [];
  if (next.length) fact(facts, "next", ...next.map((command) => element("code", {}, printable(command))));
  return element("div", { class: "details" }, facts);
};

const suspectView = (suspect, said, widest) => {
  const grown = suspect.growth.retained_bytes;
  const verdict = Object.hasOwn(VERDICTS, suspect.verdict) ? suspect.verdict : "growth";
  const bar = element("span", { class: "weight", "aria-hidden": "true" });
  bar.style.setProperty("--part", String(widest > 0 ? Math.max(0, grown) / widest : 0));
  const held = [name(suspect.holder), element("span", { class: "dim" }, " holds ", name(suspect.class))];
  if (suspect.detector) {
    const kind = printable(suspect.detector);
    held.push(" ", element("span", { class: "kind", "data-pill": kind }, kind));
  }
  const pill = { class: `verdict ${verdict}`, "data-pill": VERDICTS[verdict] };
  const summary = element(
    "summary",
    {},
    element("span", { class: "rank" }, String(suspect.rank)),
    element("span", pill, VERDICTS[verdict]),
    element("span", { class: "what" }, ...held),
    element("span", { class: "grown" }, said.grown),
    bar,
  );
  const row = element("details", { class: "suspect" }, summary);
  const open = () => {
    if (row.open && row.children.length === 1) row.append(suspectDetails(suspect, said));
  };
  row.addEventListener("toggle", open);
  return row;
};

/** Returns the text about a suspect that the search field searches. */
const searchable = (suspect) => {
  const { holder, root, path, stacks, allocated_at = [] } = suspect;
  const frames = [...stacks, ...allocated_at].flatMap((stack) => [stack.class ?? "", ...stack.frames]);
  return [holder, suspect.class, root, ...path, ...frames].join("\n").toLowerCase();
};

const showSuspects = (suspects) => {
  const none = byId("no-suspects");
  const list = byId("suspect-list");
  if (!suspects.length) {
    none.textContent = sentences.none ?? "";
    none.hidden = !sentences.none;
    return;
  }
  const widest = suspects.reduce((most, s) => Math.max(most, s.growth.retained_bytes), 0);
  const rows = suspects.map((suspect, i) => suspectView(suspect, sentences.suspects[i], widest));
  list.append(...rows);
  rows[0].open = true;
  rows[0].append(suspectDetails(suspects[0], sentences.suspects[0]));
  let texts = null;
  let wanted = "";
  let limit = FIRST;
  const all = element("button", { type: "button" }, `Show all ${grouped(rows.length)}`);
  list.append(all);
  const fits = (row, i) => (!wanted || texts[i].includes(wanted)) && pills.fits(row);
  const show = () => {
    if (wanted) texts ||= suspects.map(searchable);
    let found = 0;
    rows.forEach((row, i) => {
      const isFound = fits(row, i);
      found += isFound ? 1 : 0;
      row.hidden = !isFound || found > limit;
    });
    all.hidden = found <= limit;
    all.textContent = `Show all ${grouped(found)}`;
    none.hidden = found > 0;
    const which = pills.pressed() ? ` with the label ${pills.pressed()}` : "";
    none.textContent = `No suspect${which} has a name that contains this.`;
  };
  all.addEventListener("click", () => {
    const next = rows.findIndex((row, i) => row.hidden && fits(row, i));
    limit = Infinity;
    show();
    // The button is hidden now, so focus the first suspect that it revealed.
    rows[Math.max(next, 0)].querySelector("summary").focus();
  });
  onSearch("find-suspect", (text) => {
    wanted = text;
    show();
  });
  const pills = pillBar(byId("pills"), show);
  pills.set(rows);
};
