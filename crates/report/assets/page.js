// The page of a comparison: its graphs, its table, and the button that saves the report.

showSuspects(report.suspects);
showClasses(report.classes, {
  all: sentences.all_classes,
  label: "Classes that changed",
  figures: [
    ["objects", (c) => c.objects.at(-1) ?? 0, grouped],
    ["change", (c) => lastLessFirst(c.objects), signed],
    ["shallow bytes", (c) => lastLessFirst(c.shallow_bytes), signedSize],
    ["retained bytes", (c) => lastLessFirst(c.retained_bytes), signedSize],
  ],
  by: 4,
  changed: " changed",
});

if (flameData) {
  // Figures are estimates only if the dump was taken with the agent. Otherwise the dump itself records the stack of
  // each object.
  flameData.estimated = Boolean(report.snapshots.at(-1)?.agent);
  const view = new FlameView(byId("flame-graph"), stackTree(flameData), {
    mode: "grown",
    label: "Growth by allocating stack",
    reset: byId("flame-reset"),
    content: "allocated class",
    trunks: true,
  });
  redraws.push(() => view.draw());
  byId("flame-mode").addEventListener("change", (event) => view.setMode(event.target.value));
  onSearch("find-frame", (text) => view.find(text));
}

const paths = sentences.suspects.map((said) => said.path);
const holders = new FlameView(byId("held-graph"), holderTree(report.suspects, paths), {
  mode: "grown",
  label: "Retained growth by holder path",
  reset: byId("held-reset"),
  content: "class that accumulates",
});
redraws.push(() => holders.draw());
onSearch("find-holder", (text) => holders.find(text));

byId("save").addEventListener("click", () => {
  const text = `${JSON.stringify(report, null, 2)}\n`;
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = element("a", { href: url, download: "heapdiff.json" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
});

document.documentElement.dataset.ready = String(Math.round(performance.now()));
