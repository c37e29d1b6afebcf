// What if: changes that are on, more to put on, and what becomes of the output and the attention.

import { ask, isStale } from "./api.js";
import { h, fill, choice, number, percent, wordName } from "./dom.js";
import { Heat, legend } from "./heat.js";
import { store, question, withChange } from "./state.js";
import { sidesOf, chooseSite } from "./sites.js";
import { range } from "./matrices.js";
import { askSeeds, interval, mark } from "./seeds.js";

const SIGNS = { temporal: "μ", input: "χ", delta: "Δ" };

/** A change in words. */
export function describe(one) {
  const head = one.head === null || one.head === undefined ? "" : `, head ${one.head}`;
  if (one.kind === "terms") return `terms × ${one.factors.map((f) => number(f)).join(" ")} in ${one.site}${head}`;
  if (one.kind === "weight") return `α = ${number(one.weight)} at step ${one.step + 1}, position ${one.source + 1} of ${one.site}${head}`;
  if (one.kind === "head") return `no head ${one.head} of ${one.site}`;
  if (one.kind === "unit") return `no unit ${one.unit} of the ${one.side}`;
  if (one.kind === "part") return `no ${SIGNS[one.part]} in the ${one.where} of ${one.site}`;
  return `${one.side} state ${one.step + 1} from “${one.sentence.slice(0, 30)}”, ${one.other + 1}`;
}

export class View {
  constructor(context) {
    this.context = context;
    this.list = h("div.chips", { id: "changes" });
    this.forms = h("div.forms");
    this.heat = new Heat({ label: "Difference of attention weights" });
    this.heat.node.style.height = "340px";
    this.legend = h("div");
    this.output = h("div");
    this.node = h("div.cards", {},
      h("section.card.broad", {}, h("header", {}, h("h2", {}, "Changes that are on"), h("span.hint", {}, "Sliders and “all here” in the attention view put some on, too. A changed word: type another sentence.")), this.list),
      h("section.card", {}, h("header", {}, h("h2", {}, "Put one on")), this.forms),
      h("section.card", {}, h("header", {}, h("h2", {}, "What became of the attention"), h("span.hint", {}, "now minus before; dashed: what could have changed at all")), this.heat.node, this.legend),
      h("section.card.broad", {}, h("header", {}, h("h2", {}, "What became of the words")), this.output));
  }

  async update(state) {
    const { answer, plain } = this.context;
    if (!answer) return;
    fill(this.list, state.changes.length ? state.changes.map((one, n) => h("span.chip", {}, describe(one),
      h("button", { "aria-label": `Take away: ${describe(one)}`, onclick: () => store.set({ changes: state.changes.filter((_, k) => k !== n) }) }, "×"))) : h("span.hint", {}, "None: the model as it is."),
    state.changes.length > 1 ? h("button.small", { onclick: () => store.set({ changes: [] }) }, "take all away") : null);
    if (this.formsOf !== this.context.thing) this.drawForms(answer, state);
    this.drawOutput(answer, plain || answer, this.context.spread);
    if (answer.sites.length) await this.drawHeat(answer, state);
  }

  add(change, same = () => false) {
    store.set({ changes: withChange(change, same) });
  }

  drawForms(answer, state) {
    this.formsOf = this.context.thing;
    const { site } = chooseSite(answer, state);
    const sites = answer.sites.map((one) => one.name);
    const crossing = answer.sites.filter((one) => one.crosses).map((one) => one.name);
    const value = (form, name) => form.querySelector(`[name=${name}]`).value;
    const form = (title, children, make) => {
      const made = h("form.row", { onsubmit: (event) => { event.preventDefault(); const change = make((name) => value(made, name)); if (change) this.add(change); } },
        h("b.form-title", {}, title), children, h("button.small.main", { type: "submit" }, "put on"));
      return made;
    };
    const pick = (label, name, options, chosen) => choice(label, options, chosen, () => {}, { name });
    const integer = (label, name, max) => h("label.field", {}, h("span", {}, label), h("input", { type: "number", name, min: 0, max, value: 0, style: { width: "74px" } }));
    const { fixed } = answer;
    const forms = [];
    const add = (kind, made) => { if (!fixed[kind]) forms.push(made); };
    add("state", this.stateForm(answer, state)); // first, so that both sentences are in sight while one drags
    if (crossing.length) {
      add("part", form("Without a component", [pick("", "part", [["temporal", "μ time"], ["input", "χ word"], ["delta", "Δ rest"]]), pick("in the", "where", ["queries", "keys", "alignment", "context"], "alignment"), pick("of", "site", crossing, crossing[crossing.length - 1])],
        (get) => ({ kind: "part", part: get("part"), where: get("where"), site: get("site") })));
      add("head", form("Without a head", [pick("", "site", sites, site.name), integer("head", "head", 64)], (get) => ({ kind: "head", site: get("site"), head: Number(get("head")) })));
    }
    add("unit", form("Without a unit", [pick("of the", "side", ["encoder", "decoder"]), integer("unit", "unit", 99999)], (get) => ({ kind: "unit", side: get("side"), unit: Number(get("unit")) })));
    fill(this.forms, forms, this.reasons(answer));
  }

  /** What cannot be changed here, and why; each reason once. */
  reasons({ fixed }) {
    const names = { part: "components", terms: "terms", head: "heads", weight: "weights", unit: "units", state: "states" };
    const why = new Map();
    for (const [kind, reason] of Object.entries(fixed)) why.set(reason, [...(why.get(reason) || []), names[kind]]);
    const { maker } = this.context.things.find((one) => one.name === this.context.thing.name) || {};
    return h("div.reasons", { id: "reasons" }, [...why].map(([reason, kinds]) => h("p.hint", {}, h("b", {}, `${kinds.join(", ")}: `), reason)),
      maker ? h("button.small", { id: "go-live", onclick: () => store.set({ thing: maker, checkpoint: "reported", sample: null, changes: [], forced: {}, target: "" }) }, "take this sentence to its model") : null);
  }

  /** A state from a second sentence: dragged onto a word, or by number. */
  stateForm(answer, state) {
    const words = h("div.words");
    const target = h("div.words");
    const box = h("input", { type: "text", id: "other", value: state.other, "aria-label": "A second sentence", placeholder: "a second sentence, Enter", style: { flex: 1 } });
    let held = null;
    const put = (from, step) => this.add({ kind: "state", side: "encoder", step, sentence: box.value.trim(), other: from }, (one) => one.kind === "state" && one.side === "encoder" && one.step === step);
    const draw = async () => {
      store.set({ other: box.value.trim() });
      const other = await ask("say", { thing: store.state.thing, checkpoint: question().checkpoint, source: box.value.trim() }, "other").catch((error) => { this.context.complain(error); return null; });
      if (!other) return;
      fill(words, other.source.map((entry, n) => h("button.word.src", { type: "button", draggable: true, "aria-pressed": "false", data: { other: n },
        ondragstart: (event) => { held = n; event.dataTransfer.setData("text/plain", String(n)); },
        onclick: (event) => { held = n; words.querySelectorAll("button").forEach((b) => b.setAttribute("aria-pressed", String(b === event.currentTarget))); } }, wordName(entry))));
      fill(target, this.context.answer.source.map((entry, n) => h("button.word.src", { type: "button", data: { onto: n }, "aria-label": `Put the chosen state at ${wordName(entry)}, ${n + 1}`,
        ondragover: (event) => { event.preventDefault(); event.currentTarget.classList.add("drop"); },
        ondragleave: (event) => event.currentTarget.classList.remove("drop"),
        ondrop: (event) => { event.preventDefault(); event.currentTarget.classList.remove("drop"); const from = Number(event.dataTransfer.getData("text/plain")); if (Number.isInteger(from)) put(from, n); },
        onclick: () => { if (held !== null) put(held, n); } }, wordName(entry))));
    };
    const form = h("form", { style: { display: "grid", gap: "6px" }, onsubmit: (event) => { event.preventDefault(); draw(); } },
      h("b.form-title", {}, "With a state of a second sentence"), h("div.row", {}, box),
      h("span.hint", {}, "Drag a state of the second sentence (above) onto a word of the present one (below); or choose both."), words, target);
    if (state.other) draw();
    return form;
  }

  drawOutput(answer, plain, spread) {
    const before = plain.free.steps;
    const now = answer.free.steps;
    const over = spread && ["mean", "low", "high"].map((end) => spread[end].free.steps);
    const count = Math.max(before.length, now.length);
    const row = (name, steps, other) => h("tr", {}, h("th", { scope: "row" }, name), Array.from({ length: count }, (_, n) => {
      const entry = steps[n];
      const differs = entry && other && (!other[n] || other[n].word !== entry.word);
      return h("td", {}, entry ? h(differs ? "b" : "span", differs ? { style: { color: "var(--accent-2)" } } : {}, wordName(entry)) : "", entry && entry.p !== undefined ? h("div.hint.num", {}, percent(entry.p)) : null);
    }));
    fill(this.output, h("div.scroll", {}, h("table", {}, h("tbody", {}, row("before", before, null), row("now", now, before),
      over ? h("tr", {}, h("th", { scope: "row" }, `${this.context.seeds.length} seeds, now`), now.map((_, n) => h("td.hint.num", {}, over[0][n] ? `${percent(over[0][n].p)} ${interval(over[1][n].p, over[2][n].p, percent)}` : ""))) : null))), mark(this.context));
  }

  async drawHeat(answer, state) {
    const { site, head } = chooseSite(answer, state);
    const asked = { ...question(), site: site.name, head };
    try {
      const over = await askSeeds(this.context, "difference", asked, "what");
      const { about, arrays } = over || (await ask("difference", asked, "what"));
      const same = (over ? about.mean : about).same;
      const matrix = same ? arrays.difference : arrays.weights;
      const { rows, columns } = sidesOf(site, answer, state.feed);
      const { kind, low, high } = same ? range("difference", matrix) : { kind: "rising", low: 0, high: 1 };
      this.heat.show({ matrix, rows, columns, kind, low, high, from: asked.changes ? (answer.reach || {})[site.name] ?? null : null });
      fill(this.legend, legend(kind, low, high, same ? `Δα in ${site.name}, head ${head}` : "the output has another length: α now"), mark(this.context));
    } catch (error) { if (!isStale(error)) throw error; }
  }
}
