// Small plots as SVG: lines over numbers, and points in two or three components that can be turned.

import { h, fill, number } from "./dom.js";
import { PALETTE } from "./colours.js";

const nice = (low, high, count = 4) => {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + 1e-12; at += step) found.push(Number(at.toPrecision(12)));
  return found;
};

/** Lines {name, points: [[x, y]], colour, low, high}, with a band from low to high; `at` marks one x. */
export function lines(all, { x = "", y = "", width = 460, height = 240, at = null, label = "", onpick = null } = {}) {
  const points = all.flatMap((line) => [...line.points, ...(line.low || []), ...(line.high || [])]).filter((p) => Number.isFinite(p[1]));
  if (!points.length) return h("p.hint", {}, "Nothing yet.");
  const [xs, ys] = [points.map((p) => p[0]), points.map((p) => p[1])];
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  let [y0, y1] = [Math.min(0, ...ys), Math.max(...ys)];
  if (y1 === y0) y1 = y0 + 1;
  const px = (v) => 46 + ((v - x0) / (x1 - x0 || 1)) * (width - 60);
  const py = (v) => height - 34 - ((v - y0) / (y1 - y0)) * (height - 52);
  return h("svg.plot", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label || `${y} over ${x}`,
    onclick: onpick && ((event) => {
      const box = event.currentTarget.getBoundingClientRect();
      onpick(x0 + (((event.clientX - box.left) / box.width) * width - 46) / (width - 60) * (x1 - x0));
    }) },
  nice(y0, y1).map((v) => [h("line.grid", { x1: 46, x2: width - 14, y1: py(v), y2: py(v) }), h("text", { x: 40, y: py(v) + 4, "text-anchor": "end" }, number(v))]),
  nice(x0, x1, 5).map((v) => h("text", { x: px(v), y: height - 18, "text-anchor": "middle" }, number(v))),
  h("text", { x: width - 14, y: height - 4, "text-anchor": "end" }, x), h("text", { x: 46, y: 11 }, y),
  all.map((line, n) => line.low && line.high && h("polygon.band", { points: [...line.high, ...[...line.low].reverse()].map((p) => `${px(p[0])},${py(p[1])}`).join(" "), fill: line.colour || PALETTE[n % PALETTE.length] })),
  all.map((line, n) => h("polyline", { points: line.points.map((p) => `${px(p[0])},${py(p[1])}`).join(" "), fill: "none", stroke: line.colour || PALETTE[n % PALETTE.length], "stroke-width": 1.8, "stroke-linejoin": "round" })),
  at !== null && h("line", { x1: px(at), x2: px(at), y1: 14, y2: height - 34, stroke: "var(--accent-2)", "stroke-width": 1.5, "stroke-dasharray": "4 3" }));
}

export const key = (all) => h("div.chips", {}, all.map((line, n) => h("span.scale", {}, h("span", { style: { width: "14px", height: "3px", background: line.colour || PALETTE[n % PALETTE.length], borderRadius: "2px" } }), line.name)));

/** Points and paths in three components: drag turns it, the wheel of keys too; flat until turned. */
export class Space {
  constructor(label, onpick = () => {}) {
    this.turn = [0, 0];
    this.deep = false;
    this.onpick = onpick;
    this.svg = h("svg.plot", { viewBox: "0 0 560 400", role: "img", "aria-label": label, tabindex: 0,
      onpointerdown: (event) => { if (this.deep) { this.grip = [event.clientX, event.clientY, ...this.turn]; this.svg.setPointerCapture(event.pointerId); } },
      onpointermove: (event) => { if (this.grip) this.rotate(this.grip[2] + (event.clientX - this.grip[0]) / 120, this.grip[3] + (event.clientY - this.grip[1]) / 120); },
      onpointerup: () => { this.grip = null; },
      onkeydown: (event) => {
        const way = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, -0.15], ArrowDown: [0, 0.15] }[event.key];
        if (way && this.deep) { event.preventDefault(); this.rotate(this.turn[0] + way[0], this.turn[1] + way[1]); }
      } });
    this.switch = h("button.small", { "aria-pressed": "false", onclick: () => this.flip() }, "3-D");
    this.why = h("p.empty");
    this.node = h("div.space", {}, this.why, this.svg, h("div.row", {}, this.switch, h("span.hint", {}, "In 3-D, drag or use the arrow keys to turn.")));
  }

  flip() {
    this.deep = !this.deep;
    this.switch.setAttribute("aria-pressed", String(this.deep));
    this.switch.textContent = this.deep ? "2-D" : "3-D";
    this.rotate(this.deep ? 0.5 : 0, this.deep ? 0.35 : 0);
  }

  rotate(...turn) {
    this.turn = turn;
    this.draw();
  }

  /** Why there is nothing to see. */
  explain(why) {
    this.marks = null;
    this.node.classList.add("without");
    this.why.textContent = why;
  }

  /** marks: {points: [[x, y, z]], line, colour, size, names, faint, steps} */
  show(marks, axes) {
    Object.assign(this, { marks, axes });
    this.node.classList.remove("without");
    this.draw();
  }

  flat([x, y, z = 0]) {
    const [a, b] = this.turn;
    const [u, w] = [x * Math.cos(a) + z * Math.sin(a), -x * Math.sin(a) + z * Math.cos(a)];
    return [u, y * Math.cos(b) - w * Math.sin(b)];
  }

  draw() {
    if (!this.marks) return;
    const flat = this.marks.map((mark) => mark.points.map((p) => this.flat(p)));
    const all = flat.flat();
    if (!all.length) return;
    const middle = [0, 1].map((k) => (Math.min(...all.map((p) => p[k])) + Math.max(...all.map((p) => p[k]))) / 2);
    const reach = Math.max(...all.map((p) => Math.max(Math.abs(p[0] - middle[0]) / 250, Math.abs(p[1] - middle[1]) / 170)), 1e-9);
    const place = (p) => [280 + (p[0] - middle[0]) / reach, 196 - (p[1] - middle[1]) / reach];
    fill(this.svg,
      h("text", { x: 552, y: 394, "text-anchor": "end" }, this.axes[0]), h("text", { x: 6, y: 14 }, this.axes[1]), this.deep && h("text", { x: 552, y: 14, "text-anchor": "end" }, this.axes[2]),
      this.marks.map((mark, m) => {
        const points = flat[m].map(place);
        const colour = mark.colour;
        return h("g", { opacity: mark.faint ? 0.28 : 1 },
          mark.line && h("polyline", { points: points.map((p) => p.join()).join(" "), fill: "none", stroke: colour, "stroke-width": mark.width || 1.6, "stroke-linejoin": "round" }),
          points.map((p, n) => [h("circle", { cx: p[0], cy: p[1], r: mark.size || 3, fill: mark.hollow ? "var(--paper)" : colour, stroke: colour, "stroke-width": mark.hollow ? 1.6 : 0,
            ...(mark.steps ? { tabindex: 0, role: "button", cursor: "pointer", "aria-label": `${mark.names[n]}, step ${n + 1}`, onclick: () => this.onpick(mark.side, n), onkeydown: (event) => event.key === "Enter" && this.onpick(mark.side, n) } : {}) },
          h("title", {}, mark.names ? mark.names[n] : "")),
          mark.named && h("text.name", { x: p[0] + 6, y: p[1] + 4 }, mark.names[n])]));
      }));
  }
}
