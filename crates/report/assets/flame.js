// A flame graph on a canvas. Only frames in view are drawn, so it may have a hundred thousand frames.

const ROW = 20;
const NARROWEST = 0.5;
/** Maximum number of rows, because browsers limit the height of a canvas. */
const MOST_ROWS = 400;
/**
 * Maximum number of rows above the zoomed frame. These rows show the outermost frame, and the frames nearest to the
 * zoomed one.
 */
const MOST_ABOVE = 200;

/** Returns class and method without the package. */
const brief = (text) => text.replace(/^((?:class )?)(?:[a-z_][\w-]*\.)+(?=[A-Z(])/, "$1");

const hash = (text) => {
  let h = 0;
  for (let i = 0; i < text.length; i++) h = (h * 31 + text.charCodeAt(i)) | 0;
  return Math.abs(h);
};

class FlameView {
  constructor(host, tree, { mode, label, reset }) {
    Object.assign(this, { host, tree, mode, reset, zoomed: 0, chosen: 0, rows: [], matches: null });
    this.canvas = element("canvas", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "flame graph",
      "aria-label": `${label}. Arrow keys move, Enter zooms, Escape resets.`,
    });
    this.cut = element("p", { class: "note", hidden: "" });
    this.said = element("p", { class: "said", role: "status", "aria-live": "polite" });
    this.tip = element("div", { class: "tip", role: "tooltip", hidden: "" });
    host.append(this.canvas, this.cut, this.said, this.tip);
    this.context = this.canvas.getContext("2d");
    const shades = new Map();
    this.shade = tree.names.map((text) => {
      const key = text.slice(0, Math.max(text.lastIndexOf("."), 0));
      if (!shades.has(key)) shades.set(key, hash(key) % 3);
      return shades.get(key);
    });
    this.runtime = Uint8Array.from(tree.names, (text) => (isRuntime(text) ? 1 : 0));
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => this.hideTip());
    this.canvas.addEventListener("click", (event) => {
      const node = this.at(event.offsetX, event.offsetY);
      if (node >= 0) this.zoom(node);
    });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("focus", () => this.draw());
    this.canvas.addEventListener("blur", () => {
      this.hideTip();
      this.draw();
    });
    reset.addEventListener("click", () => {
      this.zoom(0);
      this.canvas.focus();
    });
    new ResizeObserver(() => {
      if (this.host.clientWidth !== this.width) this.draw();
    }).observe(host);
    this.draw();
  }

  get values() {
    return this.tree.values[this.mode];
  }

  setMode(mode) {
    this.mode = mode;
    this.zoomed = 0;
    this.chosen = 0;
    this.find(this.wanted || "");
  }

  zoom(node) {
    this.zoomed = node;
    this.chosen = node;
    this.reset.disabled = node === 0;
    this.host.dataset.zoom = this.tree.names[this.tree.name[node]];
    this.hideTip();
    this.draw();
    this.say();
    this.inSight(this.placeOf(node)?.[1] ?? 0);
  }

  /**
   * Scrolls to a row if it is not in view. For example, a zoomed frame may be out of view, because all frames that lead
   * to it are drawn above it.
   */
  inSight(y) {
    const top = this.canvas.getBoundingClientRect().top + y;
    const hidden = document.querySelector("header")?.getBoundingClientRect().bottom ?? 0;
    if (top >= hidden && top + 3 * ROW <= innerHeight) return;
    scrollBy({ top: top - innerHeight / 3 });
  }

  /**
   * Marks frames whose name contains a text, and adds up their values. If a path has several matches, only the one
   * nearest to the root is counted, because its value includes the values of the others.
   */
  find(wanted) {
    const { tree, values } = this;
    this.wanted = wanted;
    if (!wanted) {
      this.matches = null;
      delete this.host.dataset.matched;
      this.said.textContent = "";
      this.draw();
      return;
    }
    const part = wanted.toLowerCase();
    this.matches = Uint8Array.from(tree.names, (text) => (text.toLowerCase().includes(part) ? 1 : 0));
    let sum = 0;
    let frames = 0;
    for (let i = 1; i < tree.count; ) {
      if (this.matches[tree.name[i]] && values[i] > 0) {
        sum += values[i];
        frames++;
        i = tree.end[i];
      } else {
        i++;
      }
    }
    this.host.dataset.matched = String(frames);
    this.said.textContent = frames
      ? `${grouped(frames)} found, ${size(sum)}, ${percent(sum, values[0])} of all`
      : "nothing found";
    this.draw();
  }

  children(node) {
    const list = [];
    for (let c = node + 1; c < this.tree.end[node]; c = this.tree.end[c]) {
      if (this.values[c] > 0) list.push(c);
    }
    return list;
  }

  key(event) {
    // Leave shortcuts to the browser: Alt with an arrow key goes back.
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { tree, values } = this;
    const widest = (list) => list.reduce((a, b) => (values[b] > values[a] ? b : a), list[0]);
    const beside = (step) => {
      const parent = tree.parent[this.chosen];
      if (parent < 0) return -1;
      const list = this.children(parent);
      return list[list.indexOf(this.chosen) + step] ?? -1;
    };
    let to = -1;
    switch (event.key) {
      case "ArrowDown":
        to = widest(this.children(this.chosen)) ?? -1;
        break;
      case "ArrowUp":
        to = tree.parent[this.chosen];
        break;
      case "ArrowLeft":
        to = beside(-1);
        break;
      case "ArrowRight":
        to = beside(1);
        break;
      case "Home":
        to = 0;
        break;
      case "Enter":
      case " ":
        this.zoom(this.chosen);
        event.preventDefault();
        return;
      case "Escape":
        this.zoom(0);
        return;
      default:
        return;
    }
    event.preventDefault();
    if (to < 0) return;
    this.chosen = to;
    // Keep the chosen frame in view: if it is not below the zoomed frame, zoom out to it.
    if (to < this.zoomed || to >= tree.end[this.zoomed]) this.zoomed = to;
    this.reset.disabled = this.zoomed === 0;
    this.draw();
    this.say();
    const place = this.placeOf(to);
    if (place) this.showTip(to, place[0] + 8, place[1] + ROW);
  }

  placeOf(node) {
    for (let row = 0; row < this.rows.length; row++) {
      const found = this.rows[row].find((r) => r[2] === node);
      if (found) return [Math.max(found[0], 0), row * ROW];
    }
    return null;
  }

  texts(node) {
    const value = this.values[node];
    const share = `${size(value)}, ${percent(value, this.values[0])} of all`;
    return [this.tree.names[this.tree.name[node]], share, ...this.tree.details(node)];
  }

  say() {
    this.host.dataset.chosen = this.tree.names[this.tree.name[this.chosen]];
    this.said.textContent = this.texts(this.chosen).slice(0, 2).join(": ");
  }

  at(x, y) {
    const row = this.rows[Math.floor(y / ROW)];
    if (!row) return -1;
    let low = 0;
    let high = row.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const [from, to, node] = row[middle];
      if (x < from) high = middle - 1;
      else if (x >= to) low = middle + 1;
      else return node;
    }
    return -1;
  }

  hover(event) {
    const node = this.at(event.offsetX, event.offsetY);
    this.canvas.style.cursor = node >= 0 ? "pointer" : "default";
    if (node < 0) this.hideTip();
    else this.showTip(node, event.offsetX + 12, event.offsetY + 16);
  }

  showTip(node, x, y) {
    const [first, ...rest] = this.texts(node);
    this.tip.replaceChildren(name(first, "strong"), ...rest.map((text) => element("div", {}, text)));
    this.tip.hidden = false;
    const room = this.host.clientWidth - this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(x, room))}px`;
    this.tip.style.top = `${y}px`;
  }

  hideTip() {
    this.tip.hidden = true;
  }

  colours() {
    // A canvas needs one colour, but the style sheet has a pair: one for light mode and one for dark mode. The probe
    // element gives the one that applies now.
    const probe = element("span", { hidden: true });
    this.host.append(probe);
    const get = (key) => {
      probe.style.color = `var(${key})`;
      return getComputedStyle(probe).color;
    };
    const shades = (key) => [1, 2, 3].map((n) => get(`--${key}-${n}`));
    const colours = {
      own: shades("own"),
      runtime: shades("runtime"),
      content: shades("content"),
      root: get("--root"),
      match: get("--match"),
      grew: shades("grew"),
      shrank: shades("shrank"),
      text: get("--on-frame"),
      line: get("--page"),
      chosen: get("--text"),
    };
    probe.remove();
    return colours;
  }

  colour(node, colours) {
    const { tree } = this;
    const text = tree.name[node];
    if (node === 0) return colours.root;
    if (this.matches && this.matches[text]) return colours.match;
    if (this.mode === "after") {
      const net = tree.values.grown[node] - tree.values.shrunk[node];
      const strength = Math.min(2, Math.floor((4 * Math.abs(net)) / Math.max(tree.values.after[node], 1)));
      return net > 0 ? colours.grew[strength] : net < 0 ? colours.shrank[strength] : colours.runtime[0];
    }
    const kind = tree.isClass(node) ? "content" : this.runtime[text] ? "runtime" : "own";
    return colours[kind][this.shade[text]];
  }

  draw() {
    const { tree, values, canvas, context } = this;
    this.width = this.host.clientWidth;
    const rows = (this.rows = []);
    const put = (row, x, width, node) => (rows[row] ||= []).push([x, x + width, node]);
    // Frames above the zoomed frame are drawn as wide as the view.
    const above = [];
    for (let p = tree.parent[this.zoomed]; p >= 0; p = tree.parent[p]) above.unshift(p);
    const folded = Math.max(0, above.length - MOST_ABOVE);
    const shownAbove = folded ? [0, ...above.slice(1 - MOST_ABOVE)] : above;
    shownAbove.forEach((node, row) => put(row, 0, this.width, node));
    let cut = false;
    if (values[this.zoomed] > 0) {
      const work = [[this.zoomed, 0, this.width, shownAbove.length]];
      while (work.length) {
        const [node, x, width, row] = work.pop();
        put(row, x, width, node);
        // The last child pushed is taken first, so children are pushed in reverse order.
        const below = [];
        let from = x;
        for (let c = node + 1; c < tree.end[node]; c = tree.end[c]) {
          const wide = (width * values[c]) / values[node];
          if (wide >= NARROWEST) below.push([c, from, wide, row + 1]);
          from += wide;
        }
        if (row + 1 < MOST_ROWS) for (let i = below.length - 1; i >= 0; i--) work.push(below[i]);
        else cut ||= below.length > 0;
      }
    }
    const said = [];
    if (cut) said.push(`Only ${MOST_ROWS} rows are drawn; zoom into a frame to see what is below it.`);
    if (folded) said.push(`${grouped(folded)} frames between the first row and the second are not drawn.`);
    this.cut.textContent = said.join(" ");
    this.cut.hidden = !said.length;
    const height = Math.max(rows.length, 1) * ROW;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paint(shownAbove.length);
  }

  paint(above) {
    const { context, rows, tree } = this;
    const colours = this.colours();
    context.font = "12px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
    context.textBaseline = "middle";
    const letter = context.measureText("m").width || 7;
    const focused = document.activeElement === this.canvas;
    let drawn = 0;
    if (!rows.length) {
      context.fillStyle = colours.chosen;
      context.fillText("no data", 4, ROW / 2);
    }
    rows.forEach((row, level) => {
      for (const [x, to, node] of row) {
        const width = to - x;
        drawn++;
        context.globalAlpha = level < above ? 0.55 : 1;
        context.fillStyle = this.colour(node, colours);
        context.fillRect(x, level * ROW, Math.max(width - (width > 3 ? 1 : 0), NARROWEST), ROW - 1);
        context.globalAlpha = 1;
        if (node === this.chosen && focused) {
          context.strokeStyle = colours.chosen;
          context.lineWidth = 2;
          context.strokeRect(x + 1, level * ROW + 1, Math.max(width - 3, 1), ROW - 3);
        }
        const room = Math.floor((width - 8) / letter);
        if (room < 3) continue;
        let text = tree.names[tree.name[node]];
        if (text.length > room) text = brief(text);
        if (text.length > room) text = `${text.slice(0, room - 1)}\u2026`;
        context.fillStyle = colours.text;
        context.fillText(text, x + 4, level * ROW + ROW / 2);
      }
    });
    this.host.dataset.drawn = String(drawn);
  }
}
