// The table of classes. Only rows in view exist as elements. Empty space of the same height takes the place of the
// other rows.

const CLASS_ROW = 28;
/** Maximum number of printed rows. */
const PRINTED = 100;

/**
 * Shows the table of classes.
 *
 * - `all` is the number of classes, listed or not.
 * - `figures` are the columns after the names. Each has a title and two functions. The first returns the value of a
 *   class, the second returns the text of a value.
 * - `by` is the number of the column by which the table is sorted at first.
 * - `changed` is a text after the number of all classes: ` changed` in a comparison, empty for one dump.
 */
const showClasses = (classes, { all, label, figures, by, changed = "" }) => {
  const columns = [
    ["class", (c) => c.class, null],
    ["loader", (c) => c.loader || "", null],
    ...figures,
  ];
  const kind = (title, text) => (text ? "figure" : title);
  const host = byId("class-table");
  const head = element("div", { class: "row head", role: "row" });
  const body = element("div", { class: "rows", role: "rowgroup" });
  const room = element("div", { class: "room", role: "presentation" });
  const grid = element("div", { class: "grid", role: "grid", tabindex: "0", "aria-label": label });
  grid.style.setProperty("--figures", String(figures.length));
  body.append(room);
  grid.append(head, body);
  host.append(grid);
  let shown = classes;
  let down = true;
  let wanted = "";

  const onPaper = element("p", { class: "note", hidden: "" });
  host.append(onPaper);
  let printing = false;

  const draw = () => {
    const first = printing ? 0 : Math.max(0, Math.floor(grid.scrollTop / CLASS_ROW) - 4);
    const count = printing ? PRINTED : Math.ceil(grid.clientHeight / CLASS_ROW) + 8;
    const rows = shown.slice(first, first + count).map((c, i) => {
      const row = element("div", { class: "row", role: "row", "aria-rowindex": String(first + i + 2) });
      for (const [title, value, text] of columns) {
        const cell = element("div", { class: kind(title, text), role: "gridcell" });
        if (text) cell.append(text(value(c)));
        else {
          cell.append(element("bdi", {}, printable(value(c))));
          cell.title = printable(value(c));
        }
        row.append(cell);
      }
      row.style.top = `${(first + i) * CLASS_ROW}px`;
      return row;
    });
    room.style.height = `${shown.length * CLASS_ROW}px`;
    room.replaceChildren(...rows);
    grid.setAttribute("aria-rowcount", String(shown.length + 1));
  };

  const arrange = () => {
    shown = wanted ? classes.filter((c) => c.class.toLowerCase().includes(wanted)) : classes.slice();
    const value = columns[by][1];
    const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    shown.sort((a, b) => (down ? order(value(b), value(a)) : order(value(a), value(b))));
    [...head.children].forEach((cell, i) => {
      cell.setAttribute("aria-sort", i === by ? (down ? "descending" : "ascending") : "none");
    });
    const part = shown.length === all ? "" : `${grouped(shown.length)} of `;
    byId("class-count").textContent = `${part}${grouped(all)}${changed}`;
    grid.scrollTop = 0;
    draw();
  };

  columns.forEach(([title, , text], i) => {
    const button = element("button", { type: "button" }, title);
    button.addEventListener("click", () => {
      down = i === by ? !down : text !== null;
      by = i;
      arrange();
    });
    head.append(element("div", { class: kind(title, text), role: "columnheader" }, button));
  });
  grid.addEventListener("scroll", () => requestAnimationFrame(draw));
  onSearch("find-class", (text) => {
    wanted = text;
    arrange();
  });
  new ResizeObserver(draw).observe(grid);
  for (const when of ["beforeprint", "afterprint"]) {
    window.addEventListener(when, () => {
      printing = when === "beforeprint";
      const more = shown.length - PRINTED;
      onPaper.textContent = `${grouped(more)} more classes are not printed.`;
      onPaper.hidden = !printing || more <= 0;
      draw();
    });
  }
  arrange();
};
