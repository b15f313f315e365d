// Curves with their names beside them. Colours, dashes and names each tell them apart by themselves.

const PIXELS = () => window.devicePixelRatio || 1;
const FONT = '12px system-ui, -apple-system, "Segoe UI", sans-serif';
const BETWEEN = 16; // pixels from one name to the next

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function axis({ label, values, log }, scale) {
  return {
    scale,
    label,
    values,
    ...(log ? { splits: decades, filter: (_, splits) => splits } : {}),
    font: FONT,
    labelFont: FONT,
    labelSize: 20,
    size: scale === "y" ? 52 : 34,
    stroke: colour("soft"),
    grid: { stroke: colour("line"), width: 1 },
    ticks: { stroke: colour("line"), width: 1, size: 5 },
  };
}

/** 1, 2 and 5 of each decade that is in sight. */
function decades(plot) {
  const { min, max } = plot.scales.y;
  const found = [];
  for (let power = Math.floor(Math.log10(min)); 10 ** power <= max; power += 1) {
    for (const digit of [1, 2, 5]) found.push(Number(`${digit}e${power}`));
  }
  return found.filter((one) => one >= min && one <= max);
}

/** The name of each curve where it ends, moved apart where two end close together. */
function namesAtTheEnd(curves) {
  return (plot) => {
    const { ctx, bbox } = plot;
    const ends = [];
    curves.forEach((curve, index) => {
      if (curve.spot) return;
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
    ctx.textAlign = "left";
    for (const { curve, y, text } of ends) {
      ctx.fillStyle = colour(curve.colour);
      ctx.fillText(text, bbox.left + bbox.width + 8 * PIXELS(), y);
    }
    for (const { colour: name, spot } of curves.filter((one) => one.spot)) {
      ctx.fillStyle = colour(name);
      ctx.textAlign = spot.align;
      ctx.fillText(spot.text, plot.valToPos(spot.x, "x", true) + spot.right * PIXELS(), plot.valToPos(spot.y, "y", true));
    }
    ctx.restore();
  };
}

/** To the right of the curves, for the longest of their names. */
function room(curves, data) {
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = FONT;
  const ends = curves.map((curve, index) => (curve.spot ? "" : curve.name(data[index + 1].findLast((one) => one !== null) ?? 0)));
  return 20 + Math.max(...ends.map((one) => ruler.measureText(one).width));
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

  /** `curves`: { colour, dash, width, fill, name(value) or spot }; `x`, `y`: { label, values, log }; `readout(index)`. */
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
        padding: [14, room(curves, data), 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
        scales: { x: { time: false, range: x.range }, y: { distr: y.log ? 3 : 1, range: y.range } },
        axes: [axis(x, "x"), axis(y, "y")],
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
