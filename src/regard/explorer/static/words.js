// Words: what each source word is to one output word; the view of models that say one thing.

import { ask, isStale } from "./api.js";
import { h, fill, choice, number, percent, wordName } from "./dom.js";
import { colour, isDark } from "./colours.js";
import { store, question } from "./state.js";
import { chooseSite } from "./sites.js";
import { askSeeds, endsOf, interval, mark } from "./seeds.js";

const ROWS = [["weights", "α weight", "rising"], ["lexical", "β lexical", "rising"], ["saliency", "saliency", "signed"], ["ibm1", "IBM model 1", "rising"]];

export class View {
  constructor(context) {
    this.context = context;
    this.head = h("div.view-title");
    this.rows = h("div.cards", { style: { gridTemplateColumns: "1fr" } });
    this.node = h("div.cards", {}, h("section.card.broad", {}, this.head, this.rows));
  }

  async update(state) {
    const { answer } = this.context;
    if (!answer) return;
    const pass = state.feed === "target" && answer.forced ? answer.forced : answer.free;
    const step = Math.min(state.step, pass.steps.length - 1);
    const word = pass.steps[step];
    fill(this.head, h("h2", {}, "Source words, to one output word"),
      pass.steps.length > 1 ? choice("output", pass.steps.map((entry, n) => [n, `${n + 1} ${wordName(entry)}`]), step, (n) => store.set({ step: Number(n) }), { id: "output-step" }) : null,
      h("b", { id: "answer" }, wordName(word)), word.p === undefined ? null : h("span.num", { id: "answer-p", data: { value: word.p } }, percent(word.p)),
      h("span.hint", {}, (word.top || []).slice(0, 4).map(([w, p]) => `${w} ${percent(p)}`).join("   ")), h("span.grow"), mark(this.context));
    const { site, head } = answer.sites.length ? chooseSite(answer, state) : {};
    const arrays = {};
    try {
      const asked = { ...question(), site: site?.name, head };
      if (site) Object.assign(arrays, ((await askSeeds(this.context, "head", asked, "words head")) || (await ask("head", asked, "words head"))).arrays);
      const plain = question({ changes: [] });
      const over = await askSeeds(this.context, "beside", plain, "words beside");
      const beside = over || (await ask("beside", plain, "words beside"));
      Object.assign(arrays, beside.arrays);
      this.why = (over ? beside.about.mean : beside.about).why;
    } catch (error) { if (isStale(error)) return; throw error; }
    fill(this.rows, ROWS.filter(([name]) => arrays[name] || this.why[name]).map(([name, title, kind]) => this.row(name, title, kind, arrays, step, answer)));
  }

  row(name, title, kind, arrays, step, answer) {
    const matrix = arrays[name];
    if (!matrix) return h("p.hint", {}, `${title}: ${this.why[name]}`);
    const width = matrix.shape[1];
    const pick = (array) => Array.from({ length: width }, (_, n) => { const v = array.data[Math.min(step, matrix.shape[0] - 1) * width + n]; return name === "lexical" ? Math.exp(v) : v; });
    const values = pick(matrix);
    const ends = endsOf(arrays, name);
    const [lows, highs] = ends ? [pick(ends.low), pick(ends.high)] : [];
    const reach = Math.max(...values.map(Math.abs), 1e-9);
    const [low, high] = kind === "signed" ? [-reach, reach] : [0, reach];
    return h("section", {}, h("h4", {}, title, h("small", {}, ` largest ${number(reach)}`)), h("div.readings", { id: `row-${name}` }, answer.source.map((entry, n) =>
      h("span.reading", { data: { value: values[n] }, style: { background: colour(kind, values[n], low, high), color: isDark(kind, values[n], low, high) ? "#fff" : "#1d2126" }, title: number(values[n], 5) }, h("span", {}, wordName(entry)), h("small.num", {}, number(values[n], 2)), ends ? h("small.num", {}, interval(lows[n], highs[n], (v) => number(v, 2))) : null))));
  }
}
