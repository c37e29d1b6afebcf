// The nine terms of a cell: numbers that add up to its score, and a slider for each.

import { h, fill, number } from "./dom.js";
import { colour, isDark } from "./colours.js";
import { store, withChange } from "./state.js";

export const PARTS = [["temporal", "μ", "time"], ["input", "χ", "word"], ["delta", "Δ", "rest"]];
const sameTerms = (site, head) => (one) => one.kind === "terms" && one.site === site && one.head === head;

/** The factors that are on now. */
export function factorsOf(state) {
  const found = state.changes.find(sameTerms(state.site, state.head));
  return found ? found.factors : Array(9).fill(1);
}

export class Terms {
  constructor() {
    this.cells = [];
    this.names = [];
    this.outputs = [];
    const grid = this.grid = h("div.terms", { role: "table", "aria-label": "Nine terms of the score" },
      h("span.corner", { title: "rows: the decoder's part; columns: the encoder's" }, "dec · enc"),
      PARTS.map(([, sign, name]) => h("span.head", {}, h("b", {}, sign), h("small", {}, name))));
    PARTS.forEach(([ours, sign, name], row) => {
      grid.append(h("span.head.side", {}, h("b", {}, sign), h("small", {}, name)));
      PARTS.forEach(([theirs, other], column) => {
        const n = 3 * row + column;
        const output = h("output.num", { id: `term-${n}` }, "–");
        const spread = h("small.num.over");
        const slider = h("input", { type: "range", min: 0, max: 2, step: 0.05, value: 1, id: `factor-${n}`,
          "aria-label": `Factor of ${ours} times ${theirs}`,
          oninput: () => this.change(n, Number(slider.value)), ondblclick: () => this.change(n, 1) });
        this.names.push(`${sign}·${other}`);
        const cell = h("div.term", {}, spread, output, slider);
        this.cells.push({ cell, output, slider, spread });
        grid.append(cell);
      });
    });
    this.sum = h("div.sum");
    this.hint = h("p.hint");
    this.reset = h("button.small", { id: "reset-terms", onclick: () => store.set({ changes: withChange(null, sameTerms(store.state.site, store.state.head)) }) }, "all factors 1");
    this.node = h("div.nine", {}, h("div.sum-row", {}, h("h4", {}, "Nine terms of the score"), this.sum), grid, this.hint, h("div.row", {}, this.reset));
  }

  change(n, value) {
    const { state } = store;
    const factors = factorsOf(state).map((old, k) => (k === n ? value : old));
    const plain = factors.every((factor) => factor === 1);
    const change = plain ? null : { kind: "terms", site: state.site, head: state.head, factors };
    store.set({ changes: withChange(change, sameTerms(state.site, state.head)) });
  }

  /** values: nine numbers of the cell, or null; score: what they add up to. */
  show(values, { exact, samples, known, cell, why } = {}) {
    const factors = factorsOf(store.state);
    const most = values ? Math.max(...values.map(Math.abs), 1e-9) : 1;
    this.cells.forEach(({ cell: node, output, slider, spread }, n) => {
      const value = values ? values[n] * factors[n] : null;
      output.textContent = values ? number(value) : "–";
      node.title = values && values.low ? `${number(values.low[n])} to ${number(values.high[n])} over all seeds` : this.names[n];
      output.dataset.value = values ? values[n] : "";
      spread.textContent = values && values.low ? `±${number((values.high[n] - values.low[n]) / 2, 2)}` : this.names[n];
      node.style.background = values ? colour("signed", value, -most, most) : "";
      const dark = values && isDark("signed", value, -most, most);
      node.classList.toggle("light-text", Boolean(dark));
      node.classList.toggle("dark-text", Boolean(values && !dark));
      if (document.activeElement !== slider) slider.value = factors[n];
      slider.disabled = exact === false || Boolean(why);
      slider.hidden = slider.disabled;
      node.classList.toggle("turned", factors[n] !== 1);
    });
    const total = values ? values.reduce((sum, value, n) => sum + value * factors[n], 0) : null;
    fill(this.sum, h("span", {}, "Σ"), h("output.num", { id: "term-sum", data: { value: total ?? "" } }, number(total)),
      factors.some((f) => f !== 1) && values ? h("span.hint", {}, `(was ${number(values.reduce((a, b) => a + b, 0))})`) : null);
    const notes = why ? [why] : [];
    this.grid.hidden = Boolean(why);
    if (exact === false) notes.push("Scores here are not products: terms are by substitution and do not add up; sliders are off.");
    if (samples) notes.push(`Means over ${number(samples)} sentences.`);
    if (known && cell && (cell[0] >= known[0] || cell[1] >= known[1])) notes.push("Beyond the recorded lengths μ is unknown; it is in Δ there.");
    this.reset.hidden = factors.every((factor) => factor === 1);
    this.hint.textContent = notes.join(" ");
  }
}
