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

/**
 * A trunk is a chain of frames that is drawn as one bar. A child continues the trunk if it has at least this share of
 * the bytes of the trunk's first frame.
 */
const TRUNK = 0.95;
/** A bar shows its size in bytes if it has room for at least this number of letters. */
const WITH_FIGURE = 26;

/**
 * Returns a name in at most `room` letters. Leaves out parts of the name in this order: the package, the source line,
 * the outer classes, the first letters of the class, the class. If the method's name is still too long, cuts its end.
 */
const fitted = (text, room) => {
  if (text.length <= room) return text;
  const brief = text.replace(/^((?:\u2192 |class |static |thread |ThreadLocal )?)(?:[a-z_][\w-]*\.)+(?=[A-Z(])/, "$1");
  const plain = brief.replace(/(?<=[\w$>])\([^()]*\)$/, "");
  const inner = plain.replace(/^(\u2192 |class |static |thread |ThreadLocal )?[\w$]*\$(?=[A-Za-z_])/, "$1");
  const last = inner.replace(/^.*\.(?=[\w$<])/, "");
  const fits = [brief, plain, inner].find((part) => part.length <= room);
  if (fits) return fits;
  if (last.length > room) return `${last.slice(0, room - 1)}\u2026`;
  return room - last.length > 4 ? `\u2026${inner.slice(1 - room)}` : last;
};

const hash = (text) => {
  let h = 0;
  for (let i = 0; i < text.length; i++) h = (h * 31 + text.charCodeAt(i)) | 0;
  return Math.abs(h);
};

/** The text above a graph before the user chooses a frame. */
const HINT =
  "Point at a frame or tap it to see its figures. A click, a second tap or Enter zooms, Escape resets, arrow keys move.";

class FlameView {
  /**
   * `content` is the word in the legend for the last bar of a stack, such as "allocated class". If `trunks` is true, a
   * chain of frames without branches is drawn as one bar.
   */
  constructor(host, tree, { mode, label, reset, content, trunks = false }) {
    Object.assign(this, { host, tree, mode, reset, content, trunks, zoomed: 0, chosen: 0, shown: -1 });
    Object.assign(this, { rows: [], matches: null, touched: false });
    this.canvas = element("canvas", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "flame graph",
      "aria-label": `${label}. Arrow keys move, Enter zooms or unfolds, Escape resets.`,
    });
    this.total = element("span", { class: "total" });
    this.found = element("output", { class: "found" });
    this.legend = element("ul", { class: "legend", "aria-label": "Colours" });
    this.said = element("p", { class: "said", role: "status", "aria-live": "polite" });
    this.cut = element("p", { class: "note", hidden: "" });
    const sums = element("p", { class: "sums" }, this.total, this.found);
    host.append(element("div", { class: "about" }, sums, this.legend, this.said), this.canvas, this.cut);
    this.context = this.canvas.getContext("2d");
    const shades = new Map();
    this.shade = tree.names.map((text) => {
      const key = text.slice(0, Math.max(text.lastIndexOf("."), 0));
      if (!shades.has(key)) shades.set(key, hash(key) % 3);
      return shades.get(key);
    });
    this.runtime = Uint8Array.from(tree.names, (text) => (isRuntime(text) ? 1 : 0));
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => this.describe(this.chosen));
    // In older browsers, a click event does not have the type of the pointer. So the type is taken from this event.
    this.canvas.addEventListener("pointerdown", (event) => (this.touched = event.pointerType === "touch"));
    this.canvas.addEventListener("click", (event) => {
      const node = this.at(event.offsetX, event.offsetY);
      if (node < 0) return;
      // A finger cannot point at a frame without a tap. So the first tap shows the figures, and the second tap zooms. A
      // tap does not scroll, because the next tap has to hit the same frame.
      if (this.touched && node !== this.chosen) this.choose(node, false);
      else this.enter(node, !this.touched);
      this.point(this.at(event.offsetX, event.offsetY));
    });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("focus", () => this.draw());
    this.canvas.addEventListener("blur", () => this.draw());
    reset.addEventListener("click", () => {
      this.clear();
      this.canvas.focus();
    });
    new ResizeObserver(() => {
      if (this.host.clientWidth !== this.width) this.draw();
    }).observe(host);
    this.setMode(mode);
  }

  get values() {
    return this.tree.values[this.mode];
  }

  setMode(mode) {
    this.mode = mode;
    this.fold();
    this.total.textContent = `Total: ${size(this.values[0])}`;
    this.explain();
    this.find(this.wanted || "");
    this.zoomed = 0;
    this.choose(0);
  }

  /** Shows what the colours mean. */
  explain() {
    const keys =
      this.mode === "after"
        ? [["grew-3", "grew"], ["runtime-1", "did not change"], ["shrank-3", "shrank"]]
        : [["own-2", "application"], ["runtime-2", "JDK and frameworks"], ["content-2", this.content]];
    if (this.folds.size) keys.push(["root", "folded frames"]);
    keys.push(["match", "found"]);
    const entry = ([colour, text]) => {
      const key = element("span", { class: "key", "aria-hidden": "true" });
      key.style.setProperty("--own", `var(--${colour})`);
      return element("li", {}, key, text);
    };
    this.legend.replaceChildren(...keys.map(entry));
  }

  /**
   * Finds the trunks: chains of frames that are drawn as one bar. A trunk begins with a first frame. It continues while
   * one child has almost all bytes of the first frame. The frame at which the trunk branches stays visible. If only
   * classes follow the trunk, the last frame of the application stays visible.
   */
  fold() {
    const { tree, values } = this;
    this.folds = new Map();
    this.inner = new Map();
    this.unfolded = new Set();
    const heads = this.trunks ? this.children(0) : [];
    for (const first of heads) {
      if (tree.names[tree.name[first]] === CUT) {
        heads.push(...this.children(first));
        continue;
      }
      const trunk = [];
      for (let node = first; node !== undefined && !tree.isClass(node); ) {
        trunk.push(node);
        node = this.children(node).find((child) => values[child] >= TRUNK * values[first]);
      }
      const branches = trunk.length && this.children(trunk.at(-1)).some((child) => !tree.isClass(child));
      const own = branches ? -1 : trunk.findLastIndex((node) => !this.runtime[tree.name[node]]);
      const [next] = trunk.splice(Math.max(own < 0 ? trunk.length - 1 : own, 0));
      if (trunk.length < 2) continue;
      this.folds.set(first, trunk);
      for (const node of trunk) this.inner.set(node, first);
      // Also find trunks in the stacks with few bytes that branch off from the frames of this trunk.
      heads.push(...this.below(first).filter((child) => child !== next));
    }
  }

  /** Returns the frames that are folded into the bar of a node; undefined if no frames are folded into it. */
  folded(node) {
    return this.unfolded.has(node) ? undefined : this.folds.get(node);
  }

  /** Returns the bar in which a node is drawn. */
  bar(node) {
    const first = this.inner.get(node);
    return first === undefined || this.unfolded.has(first) ? node : first;
  }

  above(node) {
    const parent = this.tree.parent[node];
    return parent < 0 ? -1 : this.bar(parent);
  }

  below(node) {
    const trunk = this.folded(node);
    if (!trunk) return this.children(node);
    const inner = new Set(trunk);
    return trunk.flatMap((each) => this.children(each).filter((child) => !inner.has(child)));
  }

  /** Zooms into a bar, or unfolds it. If `scrolls` is true, scrolls to the bar. */
  enter(node, scrolls = true) {
    if (this.folded(node)) {
      this.unfolded.add(node);
      this.choose(node, scrolls);
    } else {
      this.zoom(node, scrolls);
    }
  }

  clear() {
    this.unfolded.clear();
    this.zoom(0);
  }

  zoom(node, scrolls = true) {
    this.zoomed = node;
    this.host.dataset.zoom = this.tree.names[this.tree.name[node]];
    this.choose(node, scrolls);
  }

  choose(node, scrolls = true) {
    this.chosen = node;
    this.shown = -1;
    // Keep the chosen frame in view: if it is not below the zoomed frame, zoom out to it.
    if (node < this.zoomed || node >= this.tree.end[this.zoomed]) this.zoomed = node;
    this.reset.disabled = this.zoomed === 0 && !this.unfolded.size;
    this.host.dataset.chosen = this.tree.names[this.tree.name[node]];
    this.draw();
    this.describe(node);
    if (scrolls && document.activeElement === this.canvas) this.inSight(this.placeOf(node)?.[1] ?? 0);
  }

  /**
   * Scrolls to a row if it is not in view. For example, a zoomed frame may be out of view, because all frames that lead
   * to it are drawn above it.
   */
  inSight(y) {
    const top = this.canvas.getBoundingClientRect().top + y;
    const hidden = this.said.getBoundingClientRect().bottom;
    if (top >= Math.min(hidden, innerHeight / 2) && top + 3 * ROW <= innerHeight) return;
    scrollBy({ top: top - innerHeight / 2 });
  }

  /**
   * Highlights frames whose name contains the text `wanted` (in lower case), and adds up their values. The case of
   * letters in the name is ignored. If a path has several matches, only the one nearest to the root is counted, because
   * its value includes the values of the others.
   */
  find(wanted) {
    const { tree, values } = this;
    this.wanted = wanted;
    if (!wanted) {
      this.matches = null;
      delete this.host.dataset.matched;
      this.found.textContent = "";
      this.draw();
      return;
    }
    this.matches = Uint8Array.from(tree.names, (text) => (text.toLowerCase().includes(wanted) ? 1 : 0));
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
    this.found.textContent = frames
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
    const { values } = this;
    const widest = (list) => list.reduce((a, b) => (values[b] > values[a] ? b : a), list[0]);
    const beside = (step) => {
      const parent = this.above(this.chosen);
      if (parent < 0) return -1;
      const list = this.below(parent);
      return list[list.indexOf(this.chosen) + step] ?? -1;
    };
    let to = -1;
    switch (event.key) {
      case "ArrowDown":
        to = widest(this.below(this.chosen)) ?? -1;
        break;
      case "ArrowUp":
        to = this.above(this.chosen);
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
        this.enter(this.chosen);
        event.preventDefault();
        return;
      case "Escape":
        this.clear();
        return;
      default:
        return;
    }
    event.preventDefault();
    if (to >= 0) this.choose(to);
  }

  placeOf(node) {
    for (let row = 0; row < this.rows.length; row++) {
      const found = this.rows[row].find((r) => r[2] === node);
      if (found) return [Math.max(found[0], 0), row * ROW];
    }
    return null;
  }

  /** Returns the name of a bar, in at most `room` letters. */
  label(node, room = Infinity) {
    const trunk = this.folded(node);
    if (!trunk) return fitted(this.tree.names[this.tree.name[node]], room);
    const frames = `${grouped(trunk.length)} frames`;
    const last = trunk.at(-1);
    const whose = this.isInAll(last) ? "all stacks" : `${percent(this.values[last], this.values[0])} of the bytes`;
    const long = `${frames} that ${whose} share`;
    return [long, frames].find((text) => text.length <= room) ?? "\u2026";
  }

  /**
   * True if all stacks have this frame, including stacks without bytes in this mode. Nodes are numbered in preorder. So
   * if the number of a node equals its depth, all nodes with smaller numbers are its ancestors. The graph may leave out
   * small stacks. Their values are then included only in the total and in their ancestors that the graph shows. So if
   * the values of the node differ from the total, some omitted stacks do not have the frame.
   */
  isInAll(node) {
    const { tree } = this;
    const isAlone = tree.depth[node] === node && tree.end[node] === tree.count;
    return isAlone && Object.values(tree.values).every((values) => values[node] === values[0]);
  }

  /** Shows name and figures of a bar above the graph. */
  describe(node) {
    if (node === this.shown) return;
    this.shown = node;
    if (node === 0 && this.chosen === 0 && document.activeElement !== this.canvas) {
      this.said.textContent = HINT;
      return;
    }
    const { tree } = this;
    const trunk = this.folded(node);
    const ends = trunk && [trunk[0], trunk.at(-1)].map((end) => tree.names[tree.name[end]]);
    const details = trunk ? [`${ends.join(" \u2026 ")}; Enter or a click unfolds them`] : tree.details(node);
    const value = this.values[node];
    const figures = `${size(value)}, ${percent(value, this.values[0])} of all`;
    const about = [figures, ...details].join("; ");
    this.said.replaceChildren(element("span", {}, name(this.label(node), "strong"), ": ", element("br"), about));
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
    this.point(node);
    this.describe(node < 0 ? this.chosen : node);
  }

  /** Sets the shape of the pointer over a bar: it shows whether a click on the bar does something. */
  point(node) {
    const acts = node >= 0 && (this.folded(node) || node !== this.zoomed || node !== this.chosen);
    this.canvas.style.cursor = acts ? "pointer" : "default";
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
    const trunk = this.folded(node);
    const isMatch = (each) => this.matches?.[tree.name[each]];
    if (trunk ? trunk.some(isMatch) : node > 0 && isMatch(node)) return colours.match;
    if (trunk || node === 0) return colours.root;
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
    for (let p = this.above(this.zoomed); p >= 0; p = this.above(p)) above.unshift(p);
    const hidden = Math.max(0, above.length - MOST_ABOVE);
    const shownAbove = hidden ? [0, ...above.slice(1 - MOST_ABOVE)] : above;
    shownAbove.forEach((node, row) => put(row, 0, this.width, node));
    let cut = false;
    if (values[this.zoomed] > 0) {
      const work = [[this.zoomed, 0, this.width, shownAbove.length]];
      while (work.length) {
        const [node, x, width, row] = work.pop();
        put(row, x, width, node);
        // `work` is a stack: the child pushed last is processed first. So children are pushed in reverse order.
        const below = [];
        let from = x;
        for (const c of this.below(node)) {
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
    if (hidden) said.push(`${grouped(hidden)} frames between the first row and the second are not drawn.`);
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
    const { context, rows, values } = this;
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
        const figure = room >= WITH_FIGURE ? size(values[node]) : "";
        const text = this.label(node, room - (figure ? figure.length + 2 : 0));
        context.fillStyle = colours.text;
        context.fillText(text, x + 4, level * ROW + ROW / 2);
        if (figure) context.fillText(figure, to - 5 - figure.length * letter, level * ROW + ROW / 2);
      }
    });
    this.host.dataset.drawn = String(drawn);
  }
}
