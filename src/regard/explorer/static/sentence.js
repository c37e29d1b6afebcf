// The sentence: what is typed, what comes out freely and what with the target fed, step by step.

import { ask, isStale } from "./api.js";
import { h, fill, percent, number, wordName, announce } from "./dom.js";
import { colour } from "./colours.js";
import { store, question } from "./state.js";
import { askSeeds, interval } from "./seeds.js";
import { chooseSite } from "./sites.js";
import { thumbnail } from "./heat.js";

export class Sentence {
  constructor(node, context) {
    Object.assign(this, { node, context });
    this.source = h("input", { id: "source", type: "text", autocomplete: "off", spellcheck: false, "aria-label": "Source sentence", placeholder: "Type a sentence, then Enter" });
    this.target = h("input", { id: "target", type: "text", autocomplete: "off", spellcheck: false, "aria-label": "Target sentence to feed, if any", placeholder: "target to feed (optional)" });
    this.examples = h("select", { id: "examples", "aria-label": "Sentences of the task", onchange: (event) => this.take(Number(event.target.value)) });
    this.out = h("div.strips");
    this.beam = h("div.beam");
    const form = h("form.ask", { onsubmit: (event) => { event.preventDefault(); this.submit(); } },
      this.source, this.target, h("button.main", { type: "submit", id: "say" }, "Say it"), this.examples,
      h("button", { type: "button", id: "beam", title: "What a beam search keeps, as a tree", onclick: () => this.grow() }, "Beam"));
    fill(node, form, this.out, this.beam);
  }

  submit() {
    store.set({ source: this.source.value.trim(), target: this.target.value.trim(), forced: {}, sample: null, cell: null, locked: false, changes: store.state.changes.filter((one) => one.kind === "terms" || one.kind === "head" || one.kind === "unit" || one.kind === "part") });
  }

  take(number) {
    const example = this.context.thing.examples[number];
    if (!example) return;
    const live = this.context.thing.live;
    store.set({ source: example.source, target: live ? example.target : "", sample: live ? null : example.sample, forced: {}, cell: null, locked: false });
  }

  update(state, changed) {
    const { thing } = this.context;
    if (document.activeElement !== this.source) this.source.value = state.source;
    if (document.activeElement !== this.target) this.target.value = state.target;
    for (const input of [this.source, this.target]) input.disabled = !thing.live;
    this.target.hidden = thing.single;
    document.getElementById("beam").hidden = !thing.live || thing.single;
    if (this.of !== thing) {
      this.of = thing;
      fill(this.examples, h("option", { value: "" }, thing.examples.length ? `${thing.examples.length} sentences` : "no sentences"),
        thing.examples.map((one, n) => h("option", { value: n }, `${one.source.slice(0, 60)}${one.target ? ` → ${one.target.slice(0, 40)}` : ""}`)));
    }
    if (changed && changed.some((name) => ["source", "thing", "target", "checkpoint"].includes(name))) fill(this.beam);
  }

  /** Asks, and shows the answer; what was said before any change stays beside it. */
  async say() {
    const asked = question();
    try {
      const answer = await ask("say", asked, "say");
      const plain = asked.changes || asked.forced ? await ask("say", { ...asked, changes: [], forced: {} }, "plain") : answer;
      const spread = await askSeeds(this.context, "say", asked, "say");
      Object.assign(this.context, { answer, plain, spread });
      this.draw(answer, plain, spread);
      this.context.calm();
    } catch (error) {
      if (!isStale(error)) throw error;
    }
  }

  draw(answer, plain, spread) {
    const { state } = store;
    const changed = answer !== plain;
    const rows = [h("div.strip", {}, h("span.who", {}, "source"), h("div.words", {}, answer.source.map((entry, n) =>
      h("button.word.src", { class: `word src${entry.special ? " special" : ""}`, draggable: true, data: { step: n },
        onclick: () => store.set({ side: "encoder", step: n }),
        ondragstart: (event) => event.dataTransfer.setData("text/plain", JSON.stringify({ side: "encoder", step: n, sentence: state.source })) }, wordName(entry)))))];
    rows.push(this.strip("output", "says freely", answer.free, changed ? plain.free : null, true, spread && ["mean", "low", "high"].map((end) => spread[end].free.steps)));
    if (answer.forced) rows.push(this.strip("forced", "with the target fed", answer.forced, changed ? plain.forced : null, false, spread && ["mean", "low", "high"].map((end) => spread[end].forced?.steps || [])));
    if (!answer.free.ended) rows.push(h("p.hint", {}, "It did not come to an end; cut here."));
    fill(this.out, rows);
    announce(`It says: ${answer.free.steps.map(wordName).join(" ")}`);
  }

  /** One row of output words; `seeds` are the same steps over all seeds: mean, low, high. */
  strip(id, who, strip, before, free, seeds = null) {
    const { state } = store;
    const words = strip.steps.map((entry, n) => {
      const other = before && (!before.steps[n] || before.steps[n].word !== entry.word);
      const forced = free && state.forced[n] !== undefined;
      const wrong = !free && entry.top && entry.top[0][0] !== entry.word;
      const kind = ["word", entry.special && "special", other && "other", forced && "forced", wrong && "wrong"].filter(Boolean).join(" ");
      const [mean, low, high] = seeds ? seeds.map((steps) => steps[n]?.p ?? null) : [];
      const sure = mean ?? entry.p ?? null;
      const over = seeds && mean !== null ? `${percent(mean)}, ${interval(low, high, percent)} over ${this.context.seeds.length} seeds; ${percent(seeds[0][n].first)} of them would say it` : "";
      return h("button", { class: kind, data: { step: n, p: sure ?? "" }, "aria-haspopup": "dialog",
        title: over ? over : entry.top ? entry.top.slice(0, 4).map(([w, p]) => `${w} ${percent(p)}`).join("   ") : "",
        "aria-label": `${wordName(entry)}${sure === null ? "" : `, ${percent(sure)}`}`,
        onclick: (event) => this.candidates(event.currentTarget, entry, n, free) },
      h("span", {}, wordName(entry)),
      wrong && h("small", {}, `says ${entry.top[0][0]}`),
      sure === null ? null : h("i.sure", { style: { width: `${Math.max(3, 100 * sure)}%`, background: colour("rising", 0.35 + 0.65 * sure) } }),
      seeds && low !== null ? h("i.spread", { style: { left: `calc(4px + ${100 * low}% - ${8 * low}px)`, width: `calc(${100 * (high - low)}% - ${8 * (high - low)}px)` } }) : null);
    });
    const undo = free && Object.keys(state.forced).length ? h("button.plain.small", { id: "unforce", onclick: () => store.set({ forced: {} }) }, "let it speak") : null;
    const pick = h("button.who", { id: `feed-${id}`, "aria-pressed": String((state.feed === "own") === free),
      title: "Look at this pass below", onclick: () => store.set({ feed: free ? "own" : "target" }) }, who);
    return h("div.strip", { id: `strip-${id}` }, pick, h("div.words", {}, words), undo);
  }

  /** The likeliest words at a step: click one, or type one, and it goes on from there. */
  candidates(button, entry, step, free) {
    document.querySelector(".pop")?.remove();
    const close = () => { pop.remove(); button.focus(); };
    const force = (word) => {
      const kept = Object.fromEntries(Object.entries(store.state.forced).filter(([n]) => Number(n) < step));
      pop.remove();
      store.set({ forced: { ...kept, [step]: word }, feed: "own" });
    };
    const typed = h("input", { type: "text", "aria-label": "Another word to force", placeholder: "or type a word, Enter",
      onkeydown: (event) => { if (event.key === "Enter" && typed.value.trim()) force(typed.value.trim()); } });
    const pop = h("div.pop", { role: "dialog", "aria-label": `Candidates at step ${step + 1}`, onkeydown: (event) => event.key === "Escape" && close() },
      h("header", {}, h("b", {}, `Step ${step + 1}`), h("button.plain", { "aria-label": "Close", onclick: close }, "×")),
      (entry.top || []).map(([word, p]) => h("button.candidate", { class: `candidate${word === entry.word ? " now" : ""}`, disabled: !free, onclick: () => force(word) },
        h("span", { title: word }, word), h("i", { style: { width: `${Math.max(1, 100 * p)}%` } }), h("span.num", {}, percent(p)))),
      free ? typed : h("p.hint", {}, "Here the target is fed. Force words in the row above."));
    const box = button.getBoundingClientRect();
    document.body.append(pop);
    pop.style.left = `${Math.max(8, Math.min(box.left, innerWidth - pop.offsetWidth - 8))}px`;
    pop.style.top = `${Math.min(box.bottom + 6, innerHeight - pop.offsetHeight - 8)}px`;
    (pop.querySelector(".candidate:not([disabled])") || pop.querySelector("button")).focus();
    setTimeout(() => addEventListener("pointerdown", (event) => { if (!pop.contains(event.target)) pop.remove(); }, { once: true }));
  }

  /** The beam as a tree; a leaf becomes the sentence, with its own attention. */
  async grow() {
    if (this.beam.childElementCount) return fill(this.beam);
    const { tree } = await ask("beam", { ...question({ feed: "own" }), forced: {}, width: 4 }, "beam").catch((error) => { this.context.complain(error); return {}; });
    if (!tree) return null;
    const depth = Math.max(...tree.map((node) => node.step)) + 1;
    const leaves = tree.filter((node) => !tree.some((other) => other.parent === node.id));
    const rank = new Map();
    leaves.sort((a, b) => b.path.join(" ").localeCompare(a.path.join(" "))).forEach((leaf, n) => rank.set(leaf.id, n));
    const height = (node) => {
      if (rank.has(node.id)) return rank.get(node.id);
      const below = tree.filter((other) => other.parent === node.id).map(height);
      rank.set(node.id, below.reduce((a, b) => a + b, 0) / below.length);
      return rank.get(node.id);
    };
    tree.forEach(height);
    const [wide, tall] = [Math.max(64, Math.min(96, 1000 / depth)), 24];
    const x = (node) => 20 + (node.step + 1) * wide;
    const y = (node) => 16 + rank.get(node.id) * tall;
    const root = { step: -1, id: -1 };
    rank.set(-1, tree.filter((n) => n.parent === -1).map((n) => rank.get(n.id)).reduce((a, b, _, all) => a + b / all.length, 0));
    const parent = (node) => tree.find((other) => other.id === node.parent) || root;
    const after = (node) => (node.id === -1 ? 0 : Math.min(wide - 14, 7 * node.shown.length + 3));
    const choose = (node) => store.set({ forced: Object.fromEntries(node.path.map((word, n) => [n, word])), feed: "own" });
    fill(this.beam, h("div.tree", {}, h("svg", { width: 60 + (depth + 1) * wide, height: 24 + leaves.length * tall, role: "img", "aria-label": `Beam of ${leaves.length} sequences` },
      tree.map((node) => h("path", { d: `M${x(parent(node)) + after(parent(node))} ${y(parent(node))} C${x(parent(node)) + wide / 2} ${y(parent(node))} ${x(node) - wide / 2} ${y(node)} ${x(node) - 6} ${y(node)}`,
        class: node.best ? "edge best" : "edge", "stroke-width": 1 + 4 * Math.exp(node.log_p) })),
      tree.map((node) => h("g", { class: `leaf${node.best ? " best" : ""}${node.ended ? " ended" : ""}`, tabindex: 0, role: "button", "aria-label": `${node.path.join(" ")}, log-probability ${number(node.score)}`,
        onclick: () => choose(node), onkeydown: (event) => event.key === "Enter" && choose(node) },
      h("title", {}, `${node.path.join(" ")}   log p ${number(node.score)}`),
      h("text", { x: x(node), y: y(node) + 4 }, `${node.shown}${node.ended ? ` ${number(node.score)}` : ""}`))))),
    this.hypotheses(tree.filter((node) => node.ended), choose),
    h("p.hint", {}, "Choose a node: it is forced, and every view shows the attention and states of that sequence. Numbers are log-probabilities."));
    const top = Math.max(...tree.filter((node) => node.best).map((node) => y(node)), 0);
    const box = this.beam.querySelector(".tree");
    box.scrollTop = Math.max(0, top - box.clientHeight / 2);
    return null;
  }

  /** Every hypothesis that ended, likeliest first, with its own attention to the source. */
  hypotheses(ended, choose) {
    const { answer } = this.context;
    const { site, head } = chooseSite(answer, store.state);
    if (!site) return null;
    const shown = ended.sort((a, b) => b.score - a.score).slice(0, 8);
    return h("div.film", { id: "hypotheses" }, shown.map((node) => {
      const canvas = h("canvas");
      const forced = Object.fromEntries(node.path.map((word, n) => [n, word]));
      ask("head", { ...question({ feed: "own", forced }), site: site.name, head }).then((found) => thumbnail(canvas, found.arrays.weights)).catch(() => {});
      return h("button.thumb.frame", { class: `thumb frame${node.best ? " best" : ""}`, title: node.path.join(" "), "aria-label": `${node.path.join(" ")}, log-probability ${number(node.score)}, its attention`, data: { score: node.score }, onclick: () => choose(node) },
        canvas, h("small.num", {}, `log p ${number(node.score)}`), h("small", {}, node.path.join(" ")));
    }));
  }
}
