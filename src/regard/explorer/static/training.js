// Training time: curves, live while a run trains, and the sentence at every checkpoint.

import { ask, isStale } from "./api.js";
import { h, fill, choice, percent, wordName } from "./dom.js";
import { store, question } from "./state.js";
import { lines, key } from "./plot.js";
import { thumbnail } from "./heat.js";
import { chooseSite } from "./sites.js";
import { PALETTE } from "./colours.js";
import { askSeeds, mark } from "./seeds.js";

export class View {
  constructor(context) {
    this.context = context;
    this.curves = h("div");
    this.film = h("div.film", { id: "film" });
    this.sure = h("div");
    this.node = h("div.cards", {},
      h("section.card", {}, h("header", {}, h("h2", {}, "Curves"), h("span.hint", { id: "live" })), this.curves),
      h("section.card", {}, h("header", {}, h("h2", {}, "How sure it is of the target"), h("span.hint", {}, "mean probability of the target's words, target fed")), this.sure),
      h("section.card.broad", {}, h("header", {}, h("h2", {}, "This sentence at every checkpoint"), h("span.hint", {}, "choose one: the whole explorer goes there")), this.film));
  }

  async update(state) {
    if (this.context.thing.kind !== "run") {
      fill(this.node, h("p.empty", {}, this.context.thing.kind === "recording" ? "A recording has no training time. Open its run." : "This model came without its training: there are no checkpoints and no curves."));
      return;
    }
    await this.drawCurves(state);
    await this.drawFilm(state);
  }

  async drawCurves(state) {
    const asked = { thing: state.thing };
    const found = await ask("curves", asked, "curves", true).catch((error) => { if (isStale(error)) return null; throw error; });
    if (!found) return;
    const over = await askSeeds(this.context, "curves", asked, "curves");
    const names = Object.keys(found.curves);
    const wanted = names.includes(this.metric) ? this.metric : names.find((n) => n.endsWith(" accuracy")) || names[0];
    const pooled = (end, name) => over?.[end].curves[name];
    const split = (name) => ({ name, points: pooled("mean", name) || found.curves[name], low: pooled("low", name), high: pooled("high", name) });
    const shown = names.filter((n) => n.split(" ").slice(1).join() === wanted.split(" ").slice(1).join()).map(split);
    const at = /^\d+$/.test(state.checkpoint) ? Number(state.checkpoint) : null;
    const nearest = (x) => found.checkpoints.reduce((best, c) => (Math.abs(c - x) < Math.abs(best - x) ? c : best), found.checkpoints[0]);
    fill(this.curves, choice("metric", names, wanted, (value) => { this.metric = value; this.drawCurves(store.state); }, { id: "metric" }),
      lines(shown, { x: "update", y: wanted.split(" ").slice(1).join(" "), at, onpick: (x) => store.set({ checkpoint: String(nearest(x)) }) }), h("div.row", {}, key(shown), mark(this.context)));
    this.node.querySelector("#live").textContent = found.done ? `finished, ${found.updates} updates` : "training now: drawn anew every two seconds";
    clearTimeout(this.timer);
    if (!found.done) this.timer = setTimeout(() => { if (this.node.isConnected) this.drawCurves(store.state).catch(() => {}); }, 2000);
  }

  async drawFilm(state) {
    const { answer } = this.context;
    const { checkpoints } = this.context.things.find((one) => one.name === state.thing);
    const { site, head } = answer.sites.length ? chooseSite(answer, state) : { site: null };
    const most = 14;
    const kept = checkpoints.length <= most ? checkpoints : Array.from({ length: most }, (_, n) => checkpoints[Math.round((n * (checkpoints.length - 1)) / (most - 1))]);
    const sure = { mean: [], low: [], high: [] };
    const meanP = (answer) => { const { steps } = answer.forced || answer.free; return steps.reduce((sum, step) => sum + step.p, 0) / steps.length; };
    const frames = kept.map((checkpoint) => h("button.thumb.frame", { "aria-label": `update ${checkpoint}`, "aria-pressed": String(String(checkpoint) === state.checkpoint), onclick: () => store.set({ checkpoint: String(checkpoint) }) }, h("canvas"), h("small.num", {}, `update ${checkpoint}`)));
    fill(this.film, frames);
    const mine = (this.run = Symbol("run"));
    for (const [n, checkpoint] of kept.entries()) {
      const asked = { ...question({ checkpoint: String(checkpoint), changes: [], forced: {} }) };
      const said = await ask("say", asked);
      if (this.run !== mine) return;
      const over = await askSeeds(this.context, "say", asked, "");
      for (const end of ["mean", "low", "high"]) sure[end].push([checkpoint, meanP(over ? over[end] : said)]);
      if (site) {
        const found = (await ask("head", { ...asked, feed: said.forced ? "target" : "own", site: site.name, head })).arrays.weights;
        if (this.run !== mine) return;
        thumbnail(frames[n].querySelector("canvas"), found);
      }
      frames[n].title = said.free.steps.map(wordName).join(" ");
      frames[n].append(h("small", {}, said.free.steps.map(wordName).join(" ").slice(0, 26)));
    }
    const several = sure.low.some((point, n) => point[1] !== sure.mean[n][1]);
    fill(this.sure, lines([{ name: "p", points: sure.mean, colour: PALETTE[2], ...(several ? { low: sure.low, high: sure.high } : {}) }], { x: "update", y: "probability" }), h("div.row", {}, h("span.hint", {}, `at the last: ${percent(sure.mean[sure.mean.length - 1][1])}`), mark(this.context)));
  }
}
