// Finders: heads by what was measured of them, sentences by theirs; a row leads there.

import { ask, isStale } from "./api.js";
import { h, fill, choice, number } from "./dom.js";
import { PALETTE } from "./colours.js";
import { store, question } from "./state.js";
import { askSeeds, interval, mark } from "./seeds.js";

const HEADS = [["site", "attention"], ["head", "head"], ["entropy", "entropy (nats)"], ["diagonal", "on the diagonal"], ["peak", "at the largest"], ["alignment", "on the alignment"], ["agreement", "agreement with β"], ["lost", "accuracy lost without it"]];
const SENTENCES = [["sample", "no."], ["source", "sentence"], ["said", "says"], ["length", "words"], ["error", "wrong words"], ["entropy", "entropy (nats)"], ["agreement", "agreement with β"]];
const isText = (name) => ["site", "source", "said"].includes(name);

export class View {
  constructor(context) {
    this.context = context;
    this.head = h("div.row");
    this.table = h("div.scroll");
    this.brush = h("div");
    this.sort = {};
    this.node = h("div.cards", {}, h("section.card.broad", {}, h("header", {}, h("h2", {}, "Find"), this.head), this.brush, this.table));
  }

  async update(state) {
    const which = state.finder === "heads" && this.context.answer?.sites.length ? "heads" : "sentences";
    fill(this.head, choice("what", [["sentences", "sentences"], ["heads", "heads"]], which, (value) => store.set({ finder: value }), { id: "finder" }), h("span.hint", { id: "finder-note" }, "measuring …"));
    try {
      const asked = { thing: state.thing, checkpoint: question().checkpoint };
      const over = await askSeeds(this.context, which, asked, "finder");
      const found = over ? over.mean : await ask(which, asked, "finder");
      this.ends = over ? { low: over.low.rows, high: over.high.rows } : null;
      found.rows.forEach((row, n) => { row.place = n; });
      this.node.querySelector("#finder-note").textContent = which === "heads"
        ? `over ${found.samples} sentences; without a head: word accuracy on ${found.tried} of them, target fed`
        : `${found.rows.length} of ${found.samples} recorded sentences`;
      this.node.querySelector("#finder-note").append(" ", mark(this.context));
      this.of = which;
      this.rows = found.rows;
      this.kept = null;
      this.draw();
    } catch (error) {
      if (isStale(error)) return;
      if (error.status !== 400) throw error;
      this.node.querySelector("#finder-note").textContent = "";
      fill(this.brush);
      fill(this.table, h("p.empty", {}, error.message));
    }
  }

  draw() {
    const columns = (this.of === "heads" ? HEADS : SENTENCES).filter(([name]) => this.rows.some((row) => row[name] !== undefined && row[name] !== null));
    const sort = this.sort[this.of] || { by: this.of === "heads" ? "diagonal" : "error", down: true };
    const size = (row) => (row[sort.by] === null || row[sort.by] === undefined ? -Infinity : row[sort.by]);
    const rows = (this.kept || this.rows).slice().sort((a, b) => (size(a) > size(b) ? 1 : size(a) < size(b) ? -1 : 0) * (sort.down ? -1 : 1));
    const most = Object.fromEntries(columns.map(([name]) => [name, Math.max(...this.rows.map((row) => Math.abs(row[name]) || 0), 1e-12)]));
    fill(this.brush, this.parallel(columns.filter(([name]) => !isText(name) && name !== "sample" && name !== "head")));
    fill(this.table, h("table", {}, h("thead", {}, h("tr", {}, columns.map(([name, title]) => h("th", { "aria-sort": sort.by === name ? (sort.down ? "descending" : "ascending") : "none" },
      h("button", { onclick: () => { this.sort[this.of] = { by: name, down: sort.by === name ? !sort.down : true }; this.draw(); } }, `${title}${sort.by === name ? (sort.down ? " ↓" : " ↑") : ""}`))))),
    h("tbody", {}, rows.slice(0, 300).map((row) => h("tr", { tabindex: 0, onclick: () => this.open(row), onkeydown: (event) => event.key === "Enter" && this.open(row) },
      columns.map(([name]) => (isText(name) ? h("td", {}, row[name] ?? h("i.hint", {}, "seeds differ")) : h("td.num", { data: { name, value: row[name] ?? "" }, title: this.ends && name !== "head" && name !== "sample" ? `${interval(this.ends.low[row.place][name], this.ends.high[row.place][name])} over all seeds` : "" }, number(row[name]),
        this.ends && !["sample", "head", "length"].includes(name) ? h("small.over", {}, interval(this.ends.low[row.place][name], this.ends.high[row.place][name], (v) => number(v, 2))) : null,
        name === "sample" || name === "head" ? null : h("div.bar", {}, h("b", { style: { width: `${(100 * Math.abs(row[name] || 0)) / most[name]}%` } }))))))))));
  }

  /** Parallel coordinates: drag along an axis keeps the rows inside. */
  parallel(columns) {
    if (columns.length < 2 || this.rows.length < 4) return null;
    const [width, height] = [900, 150];
    const x = (n) => 40 + (n * (width - 80)) / (columns.length - 1);
    const ranges = columns.map(([name]) => { const all = this.rows.map((row) => row[name]).filter((v) => v !== null && v !== undefined); return [Math.min(...all), Math.max(...all)]; });
    const y = (n, value) => height - 26 - ((value - ranges[n][0]) / (ranges[n][1] - ranges[n][0] || 1)) * (height - 52);
    this.bounds ||= {};
    const inside = (row) => columns.every(([name]) => !this.bounds[name] || (row[name] >= this.bounds[name][0] && row[name] <= this.bounds[name][1]));
    const svg = h("svg.plot", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "All rows over all measures; drag along an axis to keep some", style: { maxHeight: "170px" } },
      this.rows.slice(0, 500).map((row) => h("polyline", { points: columns.map(([name], n) => `${x(n)},${y(n, row[name] ?? ranges[n][0])}`).join(" "), fill: "none", stroke: inside(row) ? PALETTE[0] : "var(--line)", "stroke-width": 1, opacity: inside(row) ? 0.35 : 0.4 })),
      columns.map(([name, title], n) => [h("line.axis", { x1: x(n), x2: x(n), y1: 26, y2: height - 26, "stroke-width": 2 }), h("text", { x: x(n), y: 14, "text-anchor": "middle" }, title),
        h("text", { x: x(n), y: height - 10, "text-anchor": "middle" }, `${number(ranges[n][0])} – ${number(ranges[n][1])}`),
        h("rect", { x: x(n) - 16, y: 20, width: 32, height: height - 40, fill: "transparent", cursor: "ns-resize", onpointerdown: (event) => this.drag(event, svg, name, n, ranges[n], height) })]));
    return [svg, Object.keys(this.bounds).length ? h("button.small", { onclick: () => { this.bounds = {}; this.kept = null; this.draw(); } }, `all rows (now ${this.rows.filter(inside).length})`) : null];
  }

  drag(event, svg, name, n, [low, high], height) {
    const value = (e) => { const box = svg.getBoundingClientRect(); const at = ((e.clientY - box.top) / box.height) * height; return low + (1 - Math.max(0, Math.min(1, (at - 26) / (height - 52)))) * (high - low); };
    const start = value(event);
    const stop = (e) => {
      const end = value(e);
      this.bounds[name] = [Math.min(start, end), Math.max(start, end)];
      if (Math.abs(end - start) < (high - low) / 100) delete this.bounds[name];
      this.kept = this.rows.filter((row) => Object.entries(this.bounds).every(([key, [a, b]]) => row[key] >= a && row[key] <= b));
      this.draw();
    };
    addEventListener("pointerup", stop, { once: true });
  }

  open(row) {
    if (this.of === "heads") return store.set({ view: "attention", site: row.site, head: row.head, cell: null, locked: false });
    const { live, single } = this.context.thing;
    return store.set({ view: single ? "words" : "attention", source: row.source, target: live ? row.target || "" : "", sample: live ? null : row.sample, forced: {}, cell: null, locked: false });
  }
}
