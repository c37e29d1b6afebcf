// Attention: every head small, one large, and what a cell is made of.

import { ask, isStale } from "./api.js";
import { h, fill, number, wordName, choice } from "./dom.js";
import { Heat, legend, thumbnail } from "./heat.js";
import { store, question, withChange } from "./state.js";
import { Terms } from "./terms.js";
import { SHOWN, merged, range, hasPieces } from "./matrices.js";
import { sidesOf, chooseSite } from "./sites.js";
import { askSeeds, endsOf, interval, isPooled, mark } from "./seeds.js";

export class View {
  constructor(context) {
    this.context = context;
    this.thumbs = h("div.thumbs", { role: "group", "aria-label": "All attentions and heads" });
    this.heat = new Heat({ label: "Attention weights", onhover: (at) => this.showCell(at || store.state.cell), onpick: (at) => store.set({ cell: at, locked: Boolean(at) }), most: 52 });
    this.terms = new Terms();
    this.cellName = h("h3", { id: "cell-name" });
    this.beside = h("div.beside", { id: "beside" });
    this.force = h("div.row");
    this.title = h("div.view-title");
    this.legend = h("div");
    this.panel = h("aside.panel", { "aria-label": "One cell" }, this.cellName, this.beside, this.force, this.terms.node);
    this.middle = h("div.middle", {}, this.title, this.heat.node, this.legend);
    this.node = h("div.attention", {}, this.thumbs, this.middle, this.panel);
    this.data = {};
  }

  async update(state, changed) {
    const { answer } = this.context;
    if (!answer) return;
    if (!answer.sites.length) {
      fill(this.node, h("div.empty", {}, h("p", {}, "This model has no attention: all that its decoder knows of the source is in one state."),
        h("div.row", {}, [["spaces", "Its spaces"], ["units", "Its units"], ["training", "Its training"]].map(([view, title]) => h("button", { onclick: () => store.set({ view }) }, title)))));
      return;
    }
    if (this.context.thing.single && state.scale === "weights" && !this.asWords) this.node.classList.add("single");
    const { site, head } = chooseSite(answer, state);
    if (state.site !== site.name || state.head !== head) {
      Object.assign(state, { site: site.name, head });
      store.write();
    }
    const key = `${JSON.stringify(question())} ${document.documentElement.dataset.theme} ${isPooled(this.context)}`;
    if (this.drawn !== key) await this.drawThumbs(answer, state);
    this.drawn = key;
    this.markThumb(state);
    await this.load(site, head, state);
    this.drawHeat(site, state);
    this.showCell(this.heat.over || state.cell);
    await Promise.all([this.loadTerms({ ...question(), site: site.name, head }), this.loadBeside(state)]);
    if (this.data.site === site && this.data.head === head) this.drawHeat(site, state);
    this.showCell(this.heat.over || state.cell);
  }

  async drawThumbs(answer, state) {
    try {
      const { arrays } = (await askSeeds(this.context, "thumbnails", question(), "thumbnails")) || (await ask("thumbnails", question(), "thumbnails"));
      const before = question().changes ? await ask("thumbnails", { ...question(), changes: [] }, "thumbnails before") : null;
      const groups = answer.sites.map((site) => {
        const [heads, rows, columns] = arrays[site.name].shape;
        const canvases = Array.from({ length: heads }, (_, n) => {
          const canvas = h("canvas");
          const slice = (from) => ({ shape: [rows, columns], data: from.data.subarray(n * rows * columns, (n + 1) * rows * columns) });
          thumbnail(canvas, slice(arrays[site.name]), "rising", 0, 255);
          const moved = before && before.arrays[site.name].shape.join() === arrays[site.name].shape.join()
            && slice(before.arrays[site.name]).data.some((v, k) => Math.abs(v - slice(arrays[site.name]).data[k]) > 3);
          return h("button.thumb", { class: `thumb${moved ? " moved" : ""}`, data: { site: site.name, head: n }, "aria-label": `${site.name}, head ${n}${moved ? ", changed" : ""}`,
            onmouseenter: () => this.preview(site, n), onmouseleave: () => this.preview(null),
            onclick: () => store.set({ site: site.name, head: n, cell: null, locked: false }) }, canvas, h("small", {}, heads > 1 ? n : ""));
        });
        return h("div.site", {}, h("h4", {}, site.name, h("small", {}, site.crosses ? "target → source" : site.query_side === "encoder" ? "source → source" : "target → target")), h("div.heads", {}, canvases));
      });
      fill(this.thumbs, groups);
    } catch (error) { if (!isStale(error)) throw error; }
  }

  markThumb(state) {
    for (const node of this.thumbs.querySelectorAll(".thumb")) {
      const here = node.dataset.site === state.site && Number(node.dataset.head) === state.head;
      node.setAttribute("aria-pressed", String(here));
    }
  }

  /** Hovering shows a head, leaving goes back to the one that was chosen. */
  async preview(site, head) {
    this.wanted = site ? `${site.name} ${head}` : "";
    const mine = this.wanted;
    const { site: own, head: chosen } = chooseSite(this.context.answer, store.state);
    try { await this.load(site || own, site ? head : chosen, store.state); } catch (error) { if (!isStale(error)) this.context.complain(error); return; }
    if (this.wanted !== mine) return;
    this.drawHeat(site || own, store.state, Boolean(site));
    if (!site) await this.loadTerms({ ...question(), site: own.name, head: chosen }).then(() => this.showCell(store.state.cell));
  }

  /** One head, of one run or over all seeds; the ends of intervals are `NAME low`, `NAME high`. */
  async load(site, head, state) {
    const asked = { ...question(), site: site.name, head };
    const what = asked.changes ? "difference" : "head";
    const found = (await askSeeds(this.context, what, asked, "head")) || (await ask(what, asked, "head"));
    const { arrays } = found;
    this.data = { ...arrays, arrays, site, head, beside: this.data.beside, besideOf: this.data.besideOf };
  }

  /** The terms of a head: they may need a recording first, so nothing waits for them. */
  async loadTerms(asked) {
    const { data } = this;
    data.waiting = true;
    try {
      const over = await askSeeds(this.context, "terms", asked, "terms");
      data.terms = over ? { about: over.about.mean, arrays: over.arrays } : await ask("terms", asked, "terms");
    } catch (error) { if (!isStale(error)) Object.assign(data, { terms: null, whyNot: error.message }); }
    data.waiting = false;
  }

  async loadBeside(state) {
    const { site } = chooseSite(this.context.answer, state);
    const asked = question({ changes: [] });
    const key = `${JSON.stringify(asked)} ${isPooled(this.context)}`;
    if (!site.crosses || this.data.besideOf === key) return;
    try {
      const over = await askSeeds(this.context, "beside", asked, "beside");
      const found = over ? { about: over.about.mean, arrays: over.arrays } : await ask("beside", asked, "beside");
      Object.assign(this.data, { beside: found, besideOf: key });
    } catch (error) { if (!isStale(error)) throw error; }
  }

  drawHeat(site, state, preview = false) {
    const { answer } = this.context;
    let { rows, columns } = sidesOf(site, answer, state.feed);
    const options = SHOWN.filter(([key]) => this.has(key, site));
    const scale = options.some(([key]) => key === state.scale) ? state.scale : "weights";
    let matrix = this.matrix(scale);
    const from = (answer.reach || {})[site.name];
    ({ matrix, rows, columns } = merged(matrix, rows, columns, state.merge));
    const { kind, low, high } = range(scale, matrix);
    this.heat.show({ matrix, rows, columns, kind, low, high, cell: preview ? null : state.cell, from: question().changes ? from ?? null : null });
    const heads = site.heads > 1 ? `, head ${this.data.head}` : "";
    fill(this.title,
      h("h2", {}, `${site.name}${heads}`, preview ? h("small", {}, " preview") : null),
      choice("shows", options, scale, (value) => store.set({ scale: value }), { id: "scale" }),
      hasPieces([...rows, ...columns]) || hasPieces(answer.source) || state.merge !== "no" ? choice("pieces", [["no", "as they are"], ["words", "merged to words"]], state.merge, (value) => store.set({ merge: value }), { id: "merge" }) : null);
    const reached = question().changes && from !== null && from !== undefined;
    fill(this.legend, legend(kind, low, high, SHOWN.find(([key]) => key === scale)[1]),
      reached ? h("span.hint", {}, h("i.dashed"), "what could have changed at all") : null,
      isPooled(this.context) && site.heads > 1 ? h("span.hint", {}, "Head numbers of different seeds need not mean the same head.") : null, h("span.grow"), mark(this.context));
  }

  has(key, site) {
    if (["low", "high"].includes(key)) return Boolean(this.data.arrays?.[`weights ${key}`]);
    if (["lexical", "saliency", "ibm1"].includes(key)) return site.crosses && Boolean(this.data.beside?.arrays[key]);
    if (key.startsWith("term ")) return Boolean(this.data.terms) && this.data.terms.about.step === null;
    return Boolean(this.data[key]);
  }

  matrix(scale) {
    if (["low", "high"].includes(scale)) return this.data.arrays[`weights ${scale}`];
    if (["lexical", "saliency", "ibm1"].includes(scale)) return this.data.beside.arrays[scale];
    if (scale.startsWith("term ")) {
      const n = Number(scale.slice(5));
      const [, rows, columns] = this.data.terms.arrays.terms.shape;
      return { shape: [rows, columns], data: this.data.terms.arrays.terms.data.subarray(n * rows * columns, (n + 1) * rows * columns) };
    }
    return this.data[scale];
  }

  async showCell(at) {
    const { state } = store;
    const site = this.data.site;
    if (!site || !this.context.answer) return;
    const { rows, columns } = sidesOf(site, this.context.answer, state.feed);
    const whole = state.merge === "no" && at && rows[at[0]] && columns[at[1]];
    if (!whole) {
      const merged = at && state.merge !== "no";
      fill(this.cellName, merged ? "Merged words" : "Point at a cell");
      fill(this.beside, h("p.hint", {}, merged ? "Cells of merged words are sums and means. Show pieces as they are to split a score." : "Hover to preview, click or press Enter to keep. Arrow keys move."));
      fill(this.force);
      this.terms.show(null, this.aboutTerms());
      return;
    }
    const [row, column] = at;
    const width = this.data.weights.shape[1];
    const pick = (matrix) => (matrix && matrix.shape[1] === width ? matrix.data[row * width + column] : null);
    fill(this.cellName, h("span", {}, wordName(rows[row])), h("i", {}, " ← "), h("span", {}, wordName(columns[column])), h("small", {}, ` step ${row + 1}, position ${column + 1}`));
    this.showBeside(pick, site, row, column);
    this.showForce(site, row, column, pick(this.data.weights), state);
    this.terms.show(await this.termsAt(row, column), { ...this.aboutTerms(), cell: at });
  }

  /** What is known of the terms, or why there are none. */
  aboutTerms() {
    if (this.data.waiting) return { why: "Sentences are recorded, to take means over …" };
    return this.data.terms ? this.data.terms.about : { why: this.data.whyNot || "" };
  }

  /** Of a long sentence, the terms of one decoder step are asked for at a time. */
  async termsAt(row, column) {
    let found = this.data.terms;
    if (!found) return null;
    let at = row;
    if (found.about.step !== null) {
      const asked = { ...question(), site: this.data.site.name, head: this.data.head, step: row };
      try { found = (await askSeeds(this.context, "terms", asked, "terms row")) || (await ask("terms", asked, "terms row")); } catch (error) { if (isStale(error)) return null; throw error; }
      at = 0;
    }
    const [, rows, columns] = found.arrays.terms.shape;
    const pick = (array) => Array.from({ length: 9 }, (_, n) => array.data[(n * rows + at) * columns + column]);
    const ends = endsOf(found.arrays, "terms");
    return Object.assign(pick(found.arrays.terms), ends && { low: pick(ends.low), high: pick(ends.high) });
  }

  showBeside(pick, site, row, column) {
    const { beside } = this.data;
    const of = (name) => (site.crosses && beside ? pick(beside.arrays[name]) : null);
    const lexical = of("lexical");
    const ends = (arrays, name, show = (v) => v) => {
      const found = arrays && endsOf(arrays, name);
      return found ? interval(show(pick(found.low)), show(pick(found.high))) : "";
    };
    const rows = [
      ["α weight", "alpha", pick(this.data.weights), 0, 1, ends(this.data.arrays, "weights")],
      ["score", "score", pick(this.data.scores), null, null, ends(this.data.arrays, "scores")],
      site.crosses ? ["β lexical", "beta", lexical === null ? null : Math.exp(lexical), 0, 1, ends(beside?.arrays, "lexical", Math.exp)] : null,
      site.crosses ? ["saliency", "saliency", of("saliency"), null, null, ends(beside?.arrays, "saliency")] : null,
      site.crosses ? ["IBM model 1", "ibm1", of("ibm1"), 0, 1, ends(beside?.arrays, "ibm1")] : null,
    ].filter(Boolean);
    const why = (beside && beside.about.why) || {};
    const reasons = { beta: why.lexical, saliency: why.saliency, ibm1: why.ibm1 };
    fill(this.beside, rows.map(([name, id, value, low, high, more]) => h("div.measure", { title: value === null && reasons[id] ? reasons[id] : "" },
      h("span", {}, name), h("output.num", { id: `cell-${id}`, data: { value: value ?? "" } }, number(value)),
      value === null && reasons[id] ? h("small.reason", {}, reasons[id].split(/[.:]/)[0]) : more ? h("small.num.over", { data: { interval: more } }, more) : low === null ? h("i") : h("i.bar", {}, h("b", { style: { width: `${100 * Math.max(0, Math.min(1, value ?? 0))}%` } })))));
  }

  showForce(site, row, column, weight, state) {
    const same = (one) => one.kind === "weight" && one.site === site.name && one.step === row && one.head === state.head;
    const set = (value) => store.set({ changes: withChange(value === null ? null : { kind: "weight", site: site.name, head: state.head, step: row, source: column, weight: value }, same) });
    const here = state.changes.find((one) => same(one) && one.source === column);
    const why = this.context.answer.fixed.weight;
    if (why) return fill(this.force, h("p.hint", {}, why));
    return fill(this.force, h("label.field.wide", {}, h("span", {}, "set α"), h("input", { type: "range", id: "set-weight", min: 0, max: 1, step: 0.01, value: here ? here.weight : weight ?? 0,
      "aria-label": "Set the weight of this cell", onchange: (event) => set(Number(event.target.value)) })),
    h("button.small", { id: "force-here", onclick: () => set(1) }, "all here"), here ? h("button.small", { onclick: () => set(null) }, "undo") : null);
  }
}
