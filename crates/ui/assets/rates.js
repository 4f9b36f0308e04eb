// Exact allocation rates by line of code, shown if a selected run has counts.

/** If no window is selected, the page shows the rates in the last part of the trace: its length in milliseconds. */
const LATEST = 60000;

const rate = (n, amount) => (n === 0 && amount > 0 ? "<1" : grouped(n));

const rateRow = (row, differs) => {
  const number = (text) => element("td", { class: "number" }, text);
  const cells = [
    number(rate(row.objects_per_second, row.objects)),
    number(row.bytes_per_second === null ? "?" : size(row.bytes_per_second)),
    element("td", {}, name(row.place)),
    element("td", {}, name(row.class)),
  ];
  if (differs) {
    const sampled = row.sampled_per_second;
    cells.splice(1, 0, number(sampled === null ? "" : grouped(sampled)));
  }
  return element("tr", {}, ...cells);
};

/** Returns the sentences that explain the rates. */
const ratesAre = (counted, differs) => {
  const said = ["Counted: executed allocations, even if the JIT compiler removes them, but not by JNI or the JVM."];
  if (differs) said.push("Sampled: objects per second, estimated from samples; shown if the difference is significant.");
  said.push(
    counted.jdk
      ? "In JDK classes some counts are lower bounds: the JIT compiler replaces some methods with its own code, which has no counters."
      : "JDK classes have no counters; count=jdk adds counters to them.",
  );
  if (counted.without_bytes > 0) said.push(`The bytes of ${grouped(counted.without_bytes)} lines are unknown, so the total does not include them.`);
  if (counted.missed > 0) said.push(`${grouped(counted.missed)} allocation sites, methods or classes have no counters.`);
  return said.join(" ");
};

const drawRates = (counted) => {
  byId("rates").hidden = counted.runs === 0;
  byId("to-rates").hidden = counted.runs === 0;
  if (counted.runs === 0) return;
  const differs = counted.rows.some((row) => row.sampled_per_second !== null);
  byId("rates-sampled").hidden = !differs;
  byId("rates-list").tBodies[0].replaceChildren(...counted.rows.map((row) => rateRow(row, differs)));
  labelCells(byId("rates-list"));
  const { from_ms, to_ms, objects_per_second, bytes_per_second } = counted;
  const rates = `${grouped(objects_per_second)} objects, ${size(bytes_per_second)} a second`;
  byId("rates-all").textContent = `${rates}; ${clock(from_ms)} to ${clock(to_ms)}, ${span(to_ms - from_ms)}`;
  byId("rates-are").textContent = ratesAre(counted, differs);
  const more = counted.all_rows - counted.rows.length;
  byId("rates-more").textContent = more > 0 ? `${grouped(more)} more lines allocate less.` : "";
};

/** Requests and shows the rates of the current window. */
const showRates = async (whole) => {
  const latest = whole.last_ms === undefined ? {} : { from: whole.last_ms - LATEST, to: whole.last_ms };
  const window = shown.window ? bounds(whole) : latest;
  drawRates(await ask("counted", { runs: shown.run, top: shown.top, ...window }));
};
