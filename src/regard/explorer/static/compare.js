// Compare: what is seen now beside what was pinned, on one scale of colours.

import { ask, isStale } from "./api.js";
import { h, fill, wordName, percent, number } from "./dom.js";
import { Heat, legend } from "./heat.js";
import { store, question } from "./state.js";
import { sidesOf, chooseSite } from "./sites.js";
import { describe } from "./whatif.js";
import { askSeeds, interval, isPooled, mark } from "./seeds.js";

const KEPT = ["thing", "checkpoint", "source", "target", "sample", "feed", "forced", "changes", "site", "head"];

export class View {
  constructor(context) {
    this.context = context;
    this.heats = [new Heat({ label: "Attention weights, pinned" }), new Heat({ label: "Attention weights, now" })];
    this.sides = [h("div.pin"), h("div.pin")];
    this.pins = h("div.chips", { id: "pins" });
    this.numbers = h("div");
    this.node = h("div.cards", {},
      h("section.card.broad", {}, h("header", {}, h("h2", {}, "Pinned"), h("button.small.main", { id: "pin", onclick: () => this.pin() }, "pin what is seen now"), h("span.hint", {}, "then change the sentence, the model, the seed or the checkpoint")), this.pins),
      h("section.card.broad", {}, h("div.pair", {}, this.sides), this.numbers));
  }

  pin() {
    const state = Object.fromEntries(KEPT.map((name) => [name, store.state[name]]));
    store.set({ pins: [...store.state.pins, state].slice(-6) });
  }

  async update(state) {
    fill(this.pins, state.pins.length ? state.pins.map((pin, n) => h("span.chip", {}, h("button.plain", { onclick: () => store.set({ ...pin }) }, this.name(pin)),
      h("button", { "aria-label": "Unpin", onclick: () => store.set({ pins: state.pins.filter((_, k) => k !== n) }) }, "×"))) : h("span.hint", {}, "Nothing is pinned yet."));
    const pinned = state.pins[state.pins.length - 1];
    const both = [pinned, state];
    const found = [];
    for (const [n, one] of both.entries()) found.push(one ? await this.draw(one, n) : fill(this.sides[n], h("p.empty", {}, "Pin something first.")) && null);
    await this.compare(found);
  }

  name(one) {
    const thing = this.context.things.find((t) => t.name === one.thing);
    const what = thing ? `${thing.task} · ${thing.model} · seed ${thing.seed}` : one.thing;
    const when = /^\d+$/.test(one.checkpoint) ? ` · update ${one.checkpoint}` : "";
    return `${what}${when} · ${one.source.slice(0, 40)}${one.changes.length ? ` · ${one.changes.map(describe).join("; ").slice(0, 60)}` : ""}`;
  }

  async draw(one, n) {
    try {
      const asked = question(one);
      const answer = await ask("say", asked, `compare ${n}`);
      const strip = one.feed === "target" && answer.forced ? answer.forced : answer.free;
      const parts = [h("b", {}, n === 0 ? "pinned" : "now"), h("span.hint", {}, this.name(one)), h("div.words", {}, strip.steps.map((entry) => h("span.word", { title: percent(entry.p ?? 0) }, wordName(entry))))];
      if (!answer.sites.length) { fill(this.sides[n], parts); return { strip, asked: { ...asked, site: "" } }; }
      const { site, head } = chooseSite(answer, one);
      const full = { ...asked, site: site.name, head };
      const own = this.isSeed(one);
      const weights = ((own && (await askSeeds(this.context, "head", full, `compare head ${n}`))) || (await ask("head", full, `compare head ${n}`))).arrays.weights;
      const { rows, columns } = sidesOf(site, answer, one.feed);
      fill(this.sides[n], parts, this.heats[n].node);
      this.heats[n].show({ matrix: weights, rows, columns });
      return { strip, weights, site, asked: full, own };
    } catch (error) { if (!isStale(error)) throw error; return null; }
  }

  /** Whether a state is one of the present configuration, so that all its seeds can be asked. */
  isSeed(one) {
    return this.context.seeds.some((seed) => seed.name === one.thing);
  }

  async compare([before, now]) {
    if (!before || !now) return fill(this.numbers);
    const asked = { first: before.asked, second: now.asked };
    const pooled = isPooled(this.context) && before.own && now.own;
    const over = pooled ? await askSeeds(this.context, "apart", asked, "apart") : null;
    const found = over ? over.mean : await ask("apart", asked, "apart").catch((error) => { if (isStale(error)) return null; throw error; });
    if (!found) return null;
    const ends = (name) => (over ? h("small", {}, ` ${interval(over.low[name], over.high[name])}`) : null);
    const rows = [["words that agree", [h("output.num", { id: "same", data: { value: found.same } }, number(found.same)), ` of ${number(found.words)}`, ends("same")]]];
    if (found.moved !== undefined) rows.push(["weight that moved, mean over steps", [h("output.num", { id: "moved", data: { value: found.moved } }, number(found.moved)), ends("moved")]]);
    return fill(this.numbers, h("div.row", {}, legend("rising", 0, 1, "α weights, one scale for both"), mark(this.context, isPooled(this.context) && !pooled ? "; what is pinned is of another configuration: one run" : "")),
      h("table.slim", {}, h("tbody", {}, rows.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td.num", {}, value))))));
  }
}
