// The colours of a page: those of the system, until the button is pressed. The browser remembers the choice if it
// allows the page to store something.

const THEME = "heapdiff-theme";
const THEMES = ["light", "dark"];
/** Functions that draw the canvases of the page again, because the colours have changed. */
const redraws = [];
const system = matchMedia("(prefers-color-scheme: dark)");
let theme = null;
try {
  theme = THEMES.find((known) => known === localStorage.getItem(THEME)) ?? null;
} catch {
  // The browser does not allow storage.
}

/** Shows a theme. Without `wanted`, shows the theme of the system. */
const applyTheme = (wanted) => {
  if (wanted) document.documentElement.dataset.theme = wanted;
  else delete document.documentElement.dataset.theme;
  const other = (wanted ?? (system.matches ? "dark" : "light")) === "dark" ? "light" : "dark";
  const button = byId("theme");
  button.hidden = false;
  button.dataset.to = other;
  button.textContent = other === "dark" ? "\u263e" : "\u2600";
  button.title = `Switch to ${other} colours`;
  button.setAttribute("aria-label", button.title);
  redraws.forEach((redraw) => redraw());
};

byId("theme").addEventListener("click", () => {
  theme = byId("theme").dataset.to;
  try {
    localStorage.setItem(THEME, theme);
  } catch {
    // The choice holds until the page is closed.
  }
  applyTheme(theme);
});
system.addEventListener("change", () => applyTheme(theme));
// Paper is white, so pages are printed in the light theme, including canvases.
window.addEventListener("beforeprint", () => applyTheme("light"));
window.addEventListener("afterprint", () => applyTheme(theme));
applyTheme(theme);
