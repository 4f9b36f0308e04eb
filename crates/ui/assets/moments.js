// The comparison of two moments.

const mark = (letter) => {
  if (!view?.x.length) return;
  shown.marks[letter] = view.x[cursorAt()];
  graph.plot.redraw(false);
  compare();
};

const unmark = () => {
  shown.marks = { a: null, b: null };
  byId("between").hidden = true;
  byId("unmark").disabled = true;
  byId("marked").textContent = "Move the cursor to a point in the graph and press A; then move it to a later point and press B.";
  graph.plot?.redraw(false);
};

const between = (row, window) => {
  const cells = ["before", "after"].map((when) => amount(row[`${when}_${shown.measure}`]));
  const change = row[`after_${shown.measure}`] - row[`before_${shown.measure}`];
  const inBetween = ["allocated", "collected"].map((what) => amount(row[`${what}_${shown.measure}`]));
  cells.push(signedAmount(change), ...inBetween);
  const numbers = cells.map((text) => element("td", { class: "number" }, text));
  if (!row.class) return element("tr", { class: "total" }, element("td", {}, "all"), ...numbers);
  const button = element("button", { type: "button", class: "line-button" }, name(row.class));
  if (row.place) button.append(element("span", { class: "dim" }, "at ", name(row.place)));
  const line = element("tr", {}, element("td", {}, button), ...numbers);
  line.addEventListener("click", () => showStacks(row, window, true));
  return line;
};

/** Requests the changes between the marked moments A and B, and lists them. */
const compare = async () => {
  const { a, b } = shown.marks;
  byId("unmark").disabled = a === null && b === null;
  if (a === null || b === null) {
    const there = a === null ? "B" : "A";
    byId("marked").textContent = `${there} is ${clock(a ?? b)}. Now mark the other point.`;
    return;
  }
  const window = { from: Math.min(a, b), to: Math.max(a, b) };
  let answer;
  try {
    answer = await ask("between", { runs: shown.run, ...window, by: shown.by, measure: shown.measure, top: shown.top });
  } catch (error) {
    if (error.name !== "AbortError") fault(error.message);
    return;
  }
  const rows = [...answer.rows, answer.total].map((row) => between(row, window));
  byId("between").tBodies[0].replaceChildren(...rows);
  labelCells(byId("between"));
  byId("between").hidden = false;
  const rest = answer.all_rows - answer.rows.length;
  const more = rest > 0 ? `; ${grouped(rest)} more rows changed less` : "";
  const when = `${clock(window.from)} and ${span(window.to - window.from)} later`;
  const what = `live ${shown.measure}, and ${shown.measure} allocated and collected in between`;
  byId("marked").textContent = `${when}: ${what}${more}.`;
};
