// Spaces: temporal paths and input components in fixed axes, the sentence drawn through them.

import { ask, isStale } from "./api.js";
import { h, fill, number, wordName, choice } from "./dom.js";
import { PALETTE } from "./colours.js";
import { store, question } from "./state.js";
import { Space } from "./plot.js";
import { isPooled, mark } from "./seeds.js";

const [ENCODER, DECODER, HERE] = [PALETTE[0], PALETTE[1], PALETTE[2]];

export class View {
  constructor(context) {
    this.context = context;
    this.paths = new Space("Temporal components of encoder and decoder", (side, step) => store.set({ side, step }));
    this.words = new Space("Input components of words", (side, step) => store.set({ side, step }));
    this.near = h("div", { id: "neighbours" });
    this.seeds = h("section.card.broad", { id: "space-seeds", hidden: true });
    this.samples = h("span.hint");
    this.head = h("div.row");
    this.node = h("div.cards", {},
      h("section.card", {}, h("header", {}, h("h2", {}, "Where the mean states go"), this.samples), this.paths.node,
        h("p.hint", {}, "Blue: encoder, orange: decoder, mean state μ at each step; hollow: the present sentence's states h.")),
      h("section.card", {}, h("header", {}, h("h2", {}, "What words add")), this.words.node,
        h("p.hint", {}, "Crosses with names: input components χ; faint: states of the same words; hollow: the present sentence, h − μ.")),
      this.seeds,
      h("section.card.broad", {}, h("header", {}, h("h2", {}, "Nearest recorded states"), this.head), this.near));
  }

  async update(state) {
    const { answer } = this.context;
    if (!answer) return;
    const asked = question();
    try {
      const found = await ask("spaces", asked, "spaces");
      fill(this.samples, `axes fixed over ${found.samples} sentences `, h("span.sample", {}, "one run"));
      const names = { encoder: answer.source.map(wordName), decoder: (state.feed === "target" && answer.forced ? answer.forced : answer.free).fed.map(wordName) };
      this.drawPaths(found.paths, names);
      this.drawWords(found.words, names);
      await this.drawSeeds(asked);
      await this.drawNear(state, names);
    } catch (error) {
      if (isStale(error)) return;
      if (error.status !== 400) throw error;
      for (const space of [this.paths, this.words]) space.explain(error.message);
      fill(this.near, h("p.empty", {}, "Neighbours are looked for in recorded sentences, and there are none."));
    }
  }

  /** Every run has axes of its own, so paths stand side by side; what they measure is averaged. */
  async drawSeeds(asked) {
    const pooled = isPooled(this.context);
    this.seeds.hidden = !pooled;
    if (!pooled) return;
    fill(this.seeds, h("p.hint", {}, "every seed is recorded …"));
    const names = this.context.seeds.map((one) => one.name);
    const measured = await ask("inspect", { things: names, instrument: "trajectories", settings: {} }, "spaces seeds");
    const small = [];
    for (const one of this.context.seeds) {
      const { paths } = await ask("spaces", { ...asked, thing: one.name }, `space ${one.name}`);
      const space = new Space(`Mean states of seed ${one.seed}`);
      if (!paths.why) space.show([{ points: paths.encoder, line: true, colour: ENCODER, size: 3 }, { points: paths.decoder, line: true, colour: DECODER, size: 3 }], paths.axes);
      small.push(h("figure", {}, space.svg, h("figcaption.hint", {}, `seed ${one.seed}`)));
    }
    fill(this.seeds, h("header", {}, h("h2", {}, "The same in every seed"), h("span.hint", {}, "axes are each run's own, so pictures stand side by side and numbers are averaged"), mark(this.context)),
      h("div.multiples", {}, small), h("table.slim", { id: "measured-paths" }, h("thead", {}, h("tr", {}, measured.columns.map((c) => h("th", {}, c)))), h("tbody", {}, measured.rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))))));
  }

  drawPaths(paths, names) {
    if (paths.why) return this.paths.explain(paths.why);
    const steps = (points) => points.map((_, n) => `step ${n + 1}`);
    const marks = [
      { points: paths.encoder, line: true, colour: ENCODER, names: steps(paths.encoder), size: 2.6 },
      { points: paths.decoder, line: true, colour: DECODER, names: steps(paths.decoder), size: 2.6 },
      ...Object.entries(paths.sentence).map(([side, points]) => ({ points, side, steps: true, hollow: true, line: true, width: 0.7, colour: side === "encoder" ? ENCODER : DECODER, names: names[side], named: points.length <= 30, size: 4 })),
    ];
    return this.paths.show(marks, paths.axes);
  }

  drawWords(words, names) {
    if (words.why) return this.words.explain(words.why);
    const marks = [
      ...words.clouds.map((points, n) => ({ points, colour: PALETTE[n % PALETTE.length], faint: true, size: 2 })),
      { points: words.points, colour: "var(--ink)", names: words.words, named: true, size: 3.4 },
      { points: words.sentence.encoder, side: "encoder", steps: true, hollow: true, colour: HERE, names: names.encoder, size: 4.4 },
    ];
    return this.words.show(marks, words.axes);
  }

  async drawNear(state, names) {
    const count = names[state.side]?.length || 1;
    const step = Math.min(state.step, count - 1);
    fill(this.head, choice("of the", [["encoder", "encoder"], ["decoder", "decoder"]], state.side, (side) => store.set({ side, step: 0 }), { id: "near-side" }),
      choice("at", names[state.side].map((word, n) => [n, `${n + 1} ${word}`]), step, (n) => store.set({ step: Number(n) }), { id: "near-step" }));
    const found = await ask("neighbours", { ...question(), side: state.side, step }, "near").catch((error) => { if (isStale(error)) return null; throw error; });
    if (!found) return;
    fill(this.near, h("table", {}, h("thead", {}, h("tr", {}, ["distance", "step", "sentence"].map((t) => h("th", {}, t)))),
      h("tbody", {}, found.near.map((row) => h("tr", {}, h("td.num", {}, number(row.distance)), h("td.num", {}, row.step + 1),
        h("td", {}, row.words.map((word, n) => [n === row.step ? h("b", {}, word) : word, " "])))))));
  }
}
