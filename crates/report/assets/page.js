// The page as a whole: theme, views, saving.

const views = [];

const THEMES = ["auto", "light", "dark"];
let theme = "auto";
byId("theme").addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  byId("theme").textContent = { auto: "\u25d0", light: "\u2600", dark: "\u263e" }[theme];
  const said = theme === "auto" ? "same as the system" : theme;
  byId("theme").setAttribute("aria-label", `Colours: ${said}`);
  views.forEach((view) => view.draw());
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => views.forEach((view) => view.draw()));

// Print in the light theme, canvases included.
for (const [when, dressed] of [["beforeprint", "light"], ["afterprint", null]]) {
  window.addEventListener(when, () => {
    const wanted = dressed ?? (theme === "auto" ? null : theme);
    if (wanted) document.documentElement.dataset.theme = wanted;
    else delete document.documentElement.dataset.theme;
    views.forEach((view) => view.draw());
  });
}

showSuspects(report.suspects);
showClasses(report.classes);

if (flameData) {
  // Figures are estimates only if the dump was taken with the agent. Otherwise the dump itself records the stack of
  // each object.
  flameData.estimated = Boolean(report.snapshots.at(-1)?.agent);
  const view = new FlameView(byId("flame-graph"), stackTree(flameData), {
    mode: "grown",
    label: "Growth by allocating stack",
    reset: byId("flame-reset"),
  });
  views.push(view);
  byId("flame-mode").addEventListener("change", (event) => view.setMode(event.target.value));
  byId("find-frame").addEventListener("input", settled((event) => view.find(event.target.value.trim())));
}

const holders = new FlameView(byId("held-graph"), holderTree(report.suspects), {
  mode: "grown",
  label: "Retained growth by holder path",
  reset: byId("held-reset"),
});
views.push(holders);
byId("find-holder").addEventListener("input", settled((event) => holders.find(event.target.value.trim())));

for (const field of document.querySelectorAll("input[type=search]")) {
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && field.value) {
      field.value = "";
      field.dispatchEvent(new Event("input"));
      event.preventDefault();
    }
  });
}

byId("save").addEventListener("click", () => {
  const text = `${JSON.stringify(report, null, 2)}\n`;
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = element("a", { href: url, download: "heapdiff.json" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
});

document.documentElement.dataset.ready = String(Math.round(performance.now()));
