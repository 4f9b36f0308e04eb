// Line charts with uPlot: axes, colours and shared options.

const COLOURS = 10;
const probe = element("span", { hidden: "" });
document.body.append(probe);
/** Returns the colour of a CSS variable. A canvas accepts only a plain colour, not a light-dark() pair. */
const colourOf = (key) => {
  probe.style.color = `var(--${key})`;
  return getComputedStyle(probe).color;
};

const DOUBLES = Array.from({ length: 54 }, (_, i) => 2 ** i);

/** Synchronizes the cursors of charts that show the same window. */
const together = uPlot.sync("moment");

/** Formats the times of an axis: the date where a day begins, seconds only for short ranges. */
const moments = (chart, splits) => {
  const range = chart.scales.x.max - chart.scales.x.min;
  return splits.map((ms, i) => {
    const isNewDay = i === 0 || two(new Date(ms).getHours()) === "00";
    if (range > 2 * 86400000 && isNewDay) return day(ms).slice(5);
    return range > 600000 ? clock(ms).slice(0, 5) : clock(ms);
  });
};

class Chart {
  /** `unit` formats values. `hooks` are uPlot hooks. */
  constructor(host, { unit, bytes = () => true, hooks = {}, cursor = {}, axes = true }) {
    Object.assign(this, { host, unit, bytes, hooks, cursor, axes, plot: null, key: "" });
    new ResizeObserver(() => this.fit()).observe(host);
  }

  fit() {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (this.plot && width > 0 && (this.plot.width !== width || this.plot.height !== height)) {
      this.plot.setSize({ width, height });
    }
  }

  /** Draws series of {key, label, colour, dash, width, values} over the times `x` in the range from..to. */
  draw(x, series, [from, to]) {
    const data = [x, ...series.map((s) => s.values)];
    const key = JSON.stringify([this.bytes(), series.map((s) => [s.key, s.colour, s.width])]);
    this.range = [from, Math.max(to, from + 1)];
    if (this.plot && key === this.key) {
      this.plot.setData(data, true);
      return;
    }
    const was = this.plot?.cursor.idx;
    this.plot?.destroy();
    this.key = key;
    this.plot = new uPlot(this.options(series), data, this.host);
    this.host.querySelector("canvas").setAttribute("aria-hidden", "true");
    if (was !== null && was !== undefined) this.to(was);
  }

  options(series) {
    const axis = {
      stroke: colourOf("dim"),
      font: "12px system-ui, sans-serif",
      grid: { stroke: colourOf("edge"), width: 1 },
      ticks: { stroke: colourOf("edge"), width: 1 },
    };
    return {
      width: this.host.clientWidth,
      height: this.host.clientHeight,
      ms: 1,
      legend: { show: false },
      pxAlign: false,
      padding: this.axes ? [14, 30, 0, 0] : [4, 30, 4, 72],
      cursor: { y: false, sync: { key: together.key }, ...this.cursor },
      scales: {
        x: { time: true, range: () => this.range },
        y: { range: (_, __, most) => [0, most > 0 ? most * 1.06 : 1] },
      },
      axes: [
        { ...axis, show: this.axes, values: moments, space: 90 },
        {
          ...axis,
          show: this.axes,
          size: 72,
          values: (_, splits) => splits.map((v) => this.unit(v)),
          ...(this.bytes() ? { incrs: DOUBLES } : {}),
        },
      ],
      series: [
        {},
        ...series.map((s) => ({
          label: s.label,
          stroke: s.colour,
          width: s.width ?? 1.5,
          dash: s.dash,
          spanGaps: true,
          points: { show: (u) => u.data[0].length < 3 },
        })),
      ],
      hooks: this.hooks,
    };
  }

  /** Moves the cursor to a point. */
  to(index) {
    const { plot } = this;
    const x = plot?.data[0][index];
    if (x === undefined) return;
    plot.setCursor({ left: plot.valToPos(x, "x"), top: plot.over.clientHeight / 2 });
  }

  /** Makes the next draw rebuild the chart, because the colours have changed. */
  again() {
    this.key = "";
  }
}

/** Draws a vertical line over the plot, or only a short line at its bottom. */
const upright = (plot, ms, { colour, dash = [], height = 1, width = 1, text = "" }) => {
  const { ctx, bbox } = plot;
  const x = plot.valToPos(ms, "x", true);
  if (x < bbox.left || x > bbox.left + bbox.width) return;
  const ratio = devicePixelRatio || 1;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.fillStyle = colour;
  ctx.lineWidth = width * ratio;
  ctx.setLineDash(dash.map((d) => d * ratio));
  ctx.beginPath();
  ctx.moveTo(x, bbox.top + bbox.height * (1 - height));
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  if (text) {
    ctx.font = `600 ${12 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    // The text is kept within the plot, because there is no room beside it.
    const half = ctx.measureText(text).width / 2;
    const middle = Math.min(Math.max(x, bbox.left + half), bbox.left + bbox.width - half);
    ctx.fillText(text, middle, bbox.top - 3 * ratio);
  }
  ctx.restore();
};
