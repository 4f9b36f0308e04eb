// Buttons that filter rows by a label, such as the verdict of a suspect.

/**
 * Manages the buttons in `host`, one for each label. Elements with the attribute `data-pill` are the labels of a row,
 * and can be clicked, too. `show` has to hide the rows that do not fit the pressed button.
 */
const pillBar = (host, show) => {
  let pressed = null;
  const labelsOf = (row) => [...row.querySelectorAll("[data-pill]")];
  const press = (pill) => {
    pressed = pressed === pill ? null : pill;
    for (const button of host.children) button.setAttribute("aria-pressed", String(button.dataset.pill === pressed));
    show();
  };
  const listen = (node) =>
    node.addEventListener("click", (event) => {
      // A click on a label in a row neither opens nor chooses the row.
      event.preventDefault();
      event.stopPropagation();
      press(node.dataset.pill);
    });
  const set = (rows) => {
    const pills = new Map();
    for (const label of rows.flatMap(labelsOf)) {
      const { pill } = label.dataset;
      pills.set(pill, { look: label.className, count: (pills.get(pill)?.count ?? 0) + 1 });
      listen(label);
    }
    if (!pills.has(pressed)) pressed = null;
    const focused = host.contains(document.activeElement) ? document.activeElement.dataset.pill : null;
    const buttons = [...pills].map(([pill, { look, count }]) => {
      const attributes = { type: "button", class: look, "data-pill": pill, "aria-pressed": String(pill === pressed) };
      return element("button", attributes, `${pill} ${grouped(count)}`);
    });
    host.replaceChildren(...buttons);
    buttons.forEach(listen);
    buttons.find((button) => button.dataset.pill === focused)?.focus({ preventScroll: true });
    host.hidden = !buttons.length;
    show();
  };
  const fits = (row) => !pressed || labelsOf(row).some((label) => label.dataset.pill === pressed);
  return { set, fits, pressed: () => pressed };
};
