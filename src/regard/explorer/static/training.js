// Training time: curves, live while a run trains, and the sentence at every checkpoint.

import { ask, isStale } from "./api.js";
import { h, fill, choice, number, percent, wordName } from "./dom.js";
import { store, question } from "./state.js";
import { lines, key } from "./plot.js";
import { thumbnail } from "./heat.js";
import { chooseSite } from "./attention.js";
import { PALETTE } from "./colours.js";

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
      fill(this.node, h("p.empty", {}, "A recording has no training time. Open its run."));
      return;
    }
    await this.drawCurves(state);
    await this.drawFilm(state);
  }

  async drawCurves(state) {
    const found = await ask("curves", { thing: state.thing }, "curves", true).catch((error) => { if (isStale(error)) return null; throw error; });
    if (!found) return;
    const names = Object.keys(found.curves);
    const wanted = names.includes(this.metric) ? this.metric : names.find((n) => n.endsWith(" accuracy")) || names[0];
    const split = (name) => ({ name, points: found.curves[name] });
    const shown = names.filter((n) => n.split(" ").slice(1).join() === wanted.split(" ").slice(1).join()).map(split);
    const at = /^\d+$/.test(state.checkpoint) ? Number(state.checkpoint) : null;
    const nearest = (x) => found.checkpoints.reduce((best, c) => (Math.abs(c - x) < Math.abs(best - x) ? c : best), found.checkpoints[0]);
    fill(this.curves, choice("metric", names, wanted, (value) => { this.metric = value; this.drawCurves(store.state); }, { id: "metric" }),
      lines(shown, { x: "update", y: wanted.split(" ").slice(1).join(" "), at, onpick: (x) => store.set({ checkpoint: String(nearest(x)) }) }), key(shown));
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
    const points = [];
    const frames = kept.map((checkpoint) => h("button.thumb.frame", { "aria-label": `update ${checkpoint}`, "aria-pressed": String(String(checkpoint) === state.checkpoint), onclick: () => store.set({ checkpoint: String(checkpoint) }) }, h("canvas"), h("small.num", {}, `update ${checkpoint}`)));
    fill(this.film, frames);
    const mine = (this.run = Symbol("run"));
    for (const [n, checkpoint] of kept.entries()) {
      const asked = { ...question({ checkpoint: String(checkpoint), changes: [], forced: {} }) };
      const said = await ask("say", asked);
      if (this.run !== mine) return;
      const strip = said.forced || said.free;
      points.push([checkpoint, strip.steps.reduce((sum, step) => sum + step.p, 0) / strip.steps.length]);
      if (site) {
        const found = (await ask("head", { ...asked, feed: said.forced ? "target" : "own", site: site.name, head })).arrays.weights;
        if (this.run !== mine) return;
        thumbnail(frames[n].querySelector("canvas"), found);
      }
      frames[n].title = said.free.steps.map(wordName).join(" ");
      frames[n].append(h("small", {}, said.free.steps.map(wordName).join(" ").slice(0, 26)));
    }
    fill(this.sure, lines([{ name: "p", points, colour: PALETTE[2] }], { x: "update", y: "probability" }), h("p.hint", {}, `now ${percent(points[points.length - 1][1])}; one run`));
    number(0);
  }
}
