// Units and gates along the sentence; what a probe reads off each step.

import { ask, isStale } from "./api.js";
import { h, fill, choice, number, percent, wordName } from "./dom.js";
import { Heat, legend } from "./heat.js";
import { PALETTE } from "./colours.js";
import { store, question, withChange } from "./state.js";
import { lines } from "./plot.js";
import { askSeeds, interval, isPooled, mark } from "./seeds.js";

const transpose = ({ shape: [rows, columns], data }) => {
  const found = new Float32Array(rows * columns);
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) found[c * rows + r] = data[r * columns + c];
  return { shape: [columns, rows], data: found };
};

export class View {
  constructor(context) {
    this.context = context;
    this.heat = new Heat({ label: "Units along the sentence", onhover: (at) => this.showUnit(at || this.heat.cell), onpick: (at) => this.showUnit(at), most: 26, stretch: true });
    this.heat.node.style.height = "58vh";
    this.head = h("div.view-title");
    this.legend = h("div");
    this.unit = h("div");
    this.reading = h("div");
    this.node = h("div.cards", {}, h("section.card.broad", {}, this.head, h("div.pair", { style: { gridTemplateColumns: "3fr 2fr" } }, h("div", {}, this.heat.node, this.legend), h("div", { style: { display: "grid", gap: "14px", alignContent: "start" } }, this.reading, this.unit))));
    this.array = "states";
  }

  async update(state) {
    if (!this.context.answer) return;
    try {
      const asked = { ...question(), side: state.side, label: state.probe };
      this.found = await ask("units", asked, "units");
      this.over = state.probe === "none" ? null : await askSeeds(this.context, "units", asked, "units");
    } catch (error) { if (isStale(error)) return; throw error; }
    const names = Object.keys(this.found.arrays);
    if (!names.includes(this.array)) this.array = "states";
    this.words = state.side === "encoder" ? this.context.answer.source : (state.feed === "target" && this.context.answer.forced ? this.context.answer.forced : this.context.answer.free).fed;
    const short = (name) => { const gate = name.split(".").pop(); const does = this.found.about.effects[gate]; return name === "states" ? "states h" : `${name.replace(`${state.side}.`, "")}${does ? ` (open: ${does})` : ""}`; };
    fill(this.head, h("h2", {}, "Units and gates"),
      choice("side", ["encoder", "decoder"], state.side, (side) => store.set({ side, step: 0 }), { id: "units-side" }),
      choice("shows", names.map((name) => [name, short(name)]), this.array, (value) => { this.array = value; this.draw(); }, { id: "units-array" }),
      choice("probe reads", [["none", "nothing"], ["word", "the word"], ["position", "the position"]], state.probe, (value) => store.set({ probe: value }), { id: "probe" }));
    this.draw();
    this.drawReading();
  }

  draw() {
    const matrix = transpose(this.found.arrays[this.array]);
    const gates = this.array !== "states";
    const reach = Math.max(...matrix.data.map(Math.abs), 1e-9);
    const range = gates ? { kind: "rising", low: 0, high: 1 } : { kind: "signed", low: -reach, high: reach };
    const units = Array.from({ length: matrix.shape[0] }, (_, n) => ({ word: String(n) }));
    this.heat.show({ matrix, rows: units, columns: this.words, ...range, cell: this.heat.cell });
    fill(this.legend, legend(range.kind, range.low, range.high, gates ? "gate: shut to open" : "state"), h("span.hint", {}, `${matrix.shape[0]} units down, words across`), h("span.sample", {}, isPooled(this.context) ? "one run: unit 3 of another seed is another unit; the probe reads all seeds" : "one run"));
    this.showUnit(this.heat.cell || [0, 0]);
  }

  showUnit(at) {
    if (!at || !this.found) return;
    const [unit] = at;
    const series = Object.entries(this.found.arrays).filter(([, array]) => array.shape[1] > unit).map(([name, { shape: [steps, width], data }], n) => ({ name, points: Array.from({ length: steps }, (_, t) => [t + 1, data[t * width + unit]]), colour: PALETTE[n % PALETTE.length] }));
    const { side } = store.state;
    fill(this.unit, h("h3", {}, `Unit ${unit}`), lines(series, { x: "step", y: "value", height: 210, label: `Unit ${unit} along the sentence` }),
      h("div.chips", {}, series.map((one) => h("span.scale", {}, h("span", { style: { width: "14px", height: "3px", background: one.colour } }), one.name))),
      !this.context.answer.fixed.unit ? h("button.small", { onclick: () => store.set({ view: "whatif", changes: withChange({ kind: "unit", side, unit }, (one) => one.kind === "unit" && one.side === side && one.unit === unit) }) }, "take it out") : null);
  }

  /** What the probe reads off each step; over seeds, how many of them read it rightly. */
  drawReading() {
    const { reading } = this.found.about;
    if (!reading) return fill(this.reading, h("p.hint", {}, "Let a linear probe read the word or the position off each state."));
    const ends = this.over && ["mean", "low", "high"].map((end) => this.over.about[end].reading);
    const accuracy = ends ? ends[0].accuracy : reading.accuracy;
    return fill(this.reading, h("h3", {}, `A probe reads the ${reading.label}`), h("div.words", { id: "readings" }, this.words.map((entry, n) =>
      h("span.word", { class: reading.right[n] ? "word" : "word other", data: { right: ends ? ends[0].right[n] : reading.right[n] } }, wordName(entry), h("small", {}, ends ? `${percent(ends[0].right[n])}` : reading.words[n])))),
    h("p.hint", {}, "Right on ", h("output.num", { id: "probe-accuracy", data: { value: accuracy } }, percent(accuracy)), ends ? ` (${interval(ends[1].accuracy, ends[2].accuracy, percent)})` : "", ` of held-out steps (${number(reading.steps)} recorded). ${ends ? "Below each word: the share of seeds that read it rightly." : "Marked: read wrongly here."} `, mark(this.context)));
  }
}
