// The page that has only a flame graph, with callers or callees first.

const order = byId("order");
const trees = new Map();
let view = null;

const show = () => {
  const which = order.value;
  if (!trees.has(which)) {
    const data = JSON.parse(byId(which).textContent);
    data.estimated = byId("flame").dataset.estimated === "true";
    data.single = true;
    trees.set(which, stackTree(data));
  }
  // Replacing the button removes the listeners of the previous view.
  const reset = byId("reset").cloneNode(true);
  reset.disabled = true;
  byId("reset").replaceWith(reset);
  const host = element("div", { class: "flame", id: "flame-graph" });
  byId("flame-graph").replaceWith(host);
  const trunks = which === "callers";
  const options = { mode: "grown", label: document.title, reset, content: "allocated class", trunks };
  view = new FlameView(host, trees.get(which), options);
  view.find(searched("find-frame"));
};

order.addEventListener("change", show);
onSearch("find-frame", (text) => view.find(text));
show();
redraws.push(() => view.draw());
document.documentElement.dataset.ready = String(Math.round(performance.now()));
