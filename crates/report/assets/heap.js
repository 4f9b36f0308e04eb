// The page of one dump. Folds frames of stacks, adds filters for the list of suspects, and shows the table of classes.

for (const list of document.querySelectorAll(".frames")) {
  list.replaceChildren(...framesView([...list.children].map((frame) => frame.textContent)));
}
for (const code of document.querySelectorAll("main code.name")) code.replaceWith(name(code.textContent));

const rows = [...document.querySelectorAll(".suspect")];
const pills = pillBar(byId("pills"), () => rows.forEach((row) => (row.hidden = !pills.fits(row))));
pills.set(rows);

const { classes, all_classes } = JSON.parse(byId("report").textContent);
showClasses(classes, {
  all: all_classes,
  label: "Classes",
  figures: [
    ["objects", (c) => c.objects, grouped],
    ["shallow bytes", (c) => c.shallow_bytes, size],
    ["retained bytes", (c) => c.retained_bytes, size],
  ],
  by: 3,
});
document.documentElement.dataset.ready = String(Math.round(performance.now()));
