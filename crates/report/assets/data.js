// Elements and numbers. Names come from a heap and are untrusted, so they are inserted only as text.

const byId = (id) => document.getElementById(id);

/** Creates an element with attributes and children. Strings become text nodes. */
const element = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
};

/** Replaces control characters, and characters that reorder or hide the text around them. */
const printable = (text) =>
  text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, "\ufffd");

/**
 * Creates an element for a name. Lines may break after the dots and dollar signs of the name. A name with right-to-left
 * characters does not change the direction of the text beside it.
 */
const name = (text, tag = "code") => {
  const node = element(tag, { dir: "ltr", class: "name" });
  for (const part of printable(text).split(/(?<=[.$/;,])/)) node.append(part, element("wbr"));
  return node;
};

const grouped = (n) => Math.abs(Math.round(n)).toString().replace(/\B(?=(\d{3})+$)/g, ",");

const size = (bytes) => {
  let n = Math.abs(bytes);
  if (n < 1024) return `${Math.round(n)} B`;
  for (const unit of ["KiB", "MiB", "GiB", "TiB"]) {
    n /= 1024;
    if (n < 1023.95) return `${n.toFixed(1)} ${unit}`;
  }
  return `${(n / 1024).toFixed(1)} PiB`;
};

const sign = (n) => (n > 0 ? "+" : n < 0 ? "-" : "");
const signed = (n) => sign(n) + grouped(n);
const signedSize = (n) => sign(n) + size(n);
const percent = (part, whole) => (whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : "\u2013");
const lastLessFirst = (list) => (list.length ? list[list.length - 1] - list[0] : 0);

const isIn = (packages, text) => packages.some((prefix) => text.startsWith(prefix));
/** The frame that replaces the outer frames of a stack if a trace cut them off. */
const CUT = "...";
const isJdk = (text) =>
  text === CUT ||
  isIn(JDK, text.replace(/^class /, "")) ||
  /^\((proxy|unknown)/.test(text) ||
  text.includes(" (lambda).");
const isAddedFramework = (text) => isIn(ADDED_FRAMEWORKS, text);
const isFramework = (text) =>
  text.includes(" (proxy).") || isAddedFramework(text) || isIn(FRAMEWORKS, text);

/** True for a frame or class that is not the application's. */
const isRuntime = (text) => isJdk(text) || isFramework(text);

/** Returns the text of a search field in lower case. */
const searched = (id) => byId(id).value.trim().toLowerCase();

/** Calls `act` with the lower-case text of a search field, 60 ms after the last change. Escape clears the field. */
const onSearch = (id, act) => {
  const field = byId(id);
  let timer = 0;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => act(searched(id)), 60);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !field.value) return;
    field.value = "";
    field.dispatchEvent(new Event("input"));
    event.preventDefault();
  });
};
