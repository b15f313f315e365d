// Curves with their names beside them. Colours, dashes and names each tell them apart by themselves.

const PIXELS = () => window.devicePixelRatio || 1;
const FONT = '12px system-ui, -apple-system, "Segoe UI", sans-serif';
const BETWEEN = 16; // pixels from one name to the next

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function axis(label, values, scale) {
  return {
    scale,
    label,
    values,
    font: FONT,
    labelFont: FONT,
    labelSize: 20,
    size: scale === "y" ? 52 : 34,
    stroke: colour("soft"),
    grid: { stroke: colour("line"), width: 1 },
    ticks: { stroke: colour("line"), width: 1, size: 5 },
  };
}

/** The name of each curve where it ends, moved apart where two end close together. */
function namesAtTheEnd(curves) {
  return (plot) => {
    const { ctx, bbox } = plot;
    const ends = [];
    curves.forEach((curve, index) => {
      const values = plot.data[index + 1];
      const last = values.findLastIndex((one) => one !== null && one !== undefined);
      if (last >= 0) ends.push({ curve, y: plot.valToPos(values[last], "y", true), text: curve.name(values[last]) });
    });
    ends.sort((one, two) => one.y - two.y);
    const gap = BETWEEN * PIXELS();
    ends.forEach((end, index) => { end.y = Math.max(end.y, index ? ends[index - 1].y + gap : bbox.top + gap / 3); });
    let lowest = bbox.top + bbox.height;
    for (const end of [...ends].reverse()) { end.y = Math.min(end.y, lowest); lowest = end.y - gap; }
    ctx.save();
    ctx.font = FONT.replace("12px", `${12 * PIXELS()}px`);
    ctx.textBaseline = "middle";
    for (const { curve, y, text } of ends) {
      ctx.fillStyle = colour(curve.colour);
      ctx.fillText(text, bbox.left + bbox.width + 8 * PIXELS(), y);
    }
    ctx.restore();
  };
}

/** A chart in its place; `show(data, options)` draws it anew when data, width or colours change. */
export class Chart {
  #plot = null;
  #last = null;

  constructor(place, height) {
    Object.assign(this, { place, height });
    new ResizeObserver(() => this.#draw()).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
  }

  /** `curves`: { colour, dash, width, name(value), fill }; `x`, `y`: { label, values, log }; `readout(index)`. */
  show(data, options) {
    this.#last = { data, options };
    this.#draw();
  }

  #draw() {
    if (!this.#last || !this.place.clientWidth) return;
    const { data, options } = this.#last;
    const { curves, x, y, readout } = options;
    this.#plot?.destroy();
    this.#plot = new uPlot(
      {
        width: this.place.clientWidth,
        height: this.height,
        padding: [14, options.room, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
        scales: { x: { time: false, range: x.range }, y: { distr: y.log ? 3 : 1, range: y.range } },
        axes: [axis(x.label, x.values, "x"), axis(y.label, y.values, "y")],
        series: [{}, ...curves.map((curve) => ({
          stroke: colour(curve.colour), dash: curve.dash, width: curve.width ?? 2, points: { show: data[0].length === 1, size: 7 },
          spanGaps: true, fill: curve.fill ? colour(curve.fill) : undefined,
        }))],
        hooks: { draw: [namesAtTheEnd(curves)], setCursor: [(plot) => readout(plot.cursor.idx ?? null)] },
      },
      data,
      this.place,
    );
  }
}
