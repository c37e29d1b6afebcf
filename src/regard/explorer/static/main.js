// The frame: which thing, which checkpoint, which view; and what becomes of errors.

import { ask, isStale } from "./api.js";
import { h, fill, choice, number, debounce } from "./dom.js";
import { store, asksAnew } from "./state.js";
import { Sentence } from "./sentence.js";
import { exportMenu } from "./exports.js";
import { VIEWS } from "./views.js";
import { sample, isPooled } from "./seeds.js";

const bar = document.getElementById("bar");
const rail = document.getElementById("rail");
const place = document.getElementById("view");
const context = { things: [], thing: null, answer: null, seeds: [] };
const sentence = new Sentence(document.getElementById("sentence"), context);
let shown = null;

/** Something went wrong: a sentence, until it is closed or better. */
export function complain(error) {
  if (isStale(error)) return;
  fill(document.getElementById("notes"), h("div.note", {}, h("span", {}, error.message || String(error)),
    h("button.plain", { "aria-label": "Close", onclick: () => fill(document.getElementById("notes")) }, "×")));
}
context.complain = complain;
context.calm = () => fill(document.getElementById("notes"));

function applyTheme(name) {
  document.documentElement.dataset.theme = name;
  try { localStorage.setItem("regard-theme", name); } catch { /* a private window */ }
}

function startTheme() {
  let kept = null;
  try { kept = localStorage.getItem("regard-theme"); } catch { /* a private window */ }
  applyTheme(kept || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
}

function drawBar() {
  const { state } = store;
  const thing = context.things.find((one) => one.name === state.thing);
  const checkpoints = thing ? thing.checkpoints : [];
  const name = (one) => `${one.task || one.name} · ${one.model}${one.seed === null || one.seed === undefined ? "" : ` · seed ${one.seed}`}${one.kind === "recording" ? " · recording" : ""}`;
  const steps = ["reported", ...checkpoints];
  const at = Math.max(0, steps.indexOf(/^\d+$/.test(state.checkpoint) ? Number(state.checkpoint) : state.checkpoint));
  const label = h("output.num", { id: "checkpoint-name" }, at === 0 ? "as reported" : `update ${steps[at]}`);
  const scrub = debounce((value) => store.set({ checkpoint: String(steps[value]) }), 60);
  fill(bar,
    h("a.brand", { href: location.href.split("#")[0], "aria-label": "Regard explorer, start" },
      h("img", { src: "/static/icon.svg", alt: "", width: 22, height: 22 }), h("b", {}, "Regard"), h("span", {}, "explorer")),
    choice("Model", context.things.map((one) => [one.name, name(one)]), state.thing,
      (value) => store.set({ thing: value, checkpoint: "reported", source: "", target: "", forced: {}, changes: [], site: "", head: 0, cell: null, locked: false, sample: null }),
      { id: "thing" }),
    checkpoints.length > 1 && h("label.field.scrub", {}, h("span", {}, "Training time"),
      h("input", { type: "range", id: "checkpoint", min: 0, max: steps.length - 1, value: at === 0 ? steps.length - 1 : at,
        "aria-valuetext": label.textContent,
        oninput: (event) => {
          const n = Number(event.target.value);
          label.textContent = `update ${steps[Math.max(1, n)]}`;
          scrub(Math.max(1, n));
        } }), label),
    h("span.grow"),
    thing && (context.seeds.length > 1
      ? h("label.badge.switch", { title: "Every view over all seeds of this configuration, with 95 % intervals" },
        h("input", { type: "checkbox", id: "over-seeds", checked: isPooled(context), onchange: (event) => store.set({ seeds: event.target.checked }) }),
        `all ${context.seeds.length} seeds`)
      : h("span.badge", { title: "Pictures of one run are pictures of one run." }, sample(context))),
    exportMenu(context),
    h("button.plain", { id: "theme", "aria-label": "Light or dark",
      onclick: () => { applyTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"); store.tell(["theme"]); } }, "◐"));
}

function drawRail() {
  fill(rail, Object.entries(VIEWS).map(([key, view]) =>
    h("button.tab", { id: `tab-${key}`, "aria-current": store.state.view === key ? "page" : null, title: view.about,
      onclick: () => store.set({ view: key }) },
    h("span.glyph", { "aria-hidden": "true" }, view.glyph), h("span", {}, view.title))));
}

function drawView(changed) {
  const key = store.state.view in VIEWS ? store.state.view : "attention";
  if (!shown || shown.key !== key) {
    const view = VIEWS[key];
    shown = { key, view: new view.View(context) };
    fill(place, shown.view.node);
    place.setAttribute("aria-label", view.title);
    changed = null;
  }
  Promise.resolve(shown.view.update(store.state, changed)).catch(complain);
}

/** The thing, once it is known: its words, its sentences. */
async function openThing() {
  const { state } = store;
  context.thing = await ask("describe", { thing: state.thing }, "describe");
  const mine = context.things.find((one) => one.name === state.thing);
  context.seeds = context.things.filter((one) => mine && one.group === mine.group && one.kind === mine.kind);
  if (context.thing.single && state.view === "attention") state.view = "words";
  if (!state.source && state.sample === null && context.thing.examples.length) {
    const first = context.thing.examples[0];
    store.set(context.thing.live ? { source: first.source, target: first.target } : { sample: first.sample ?? 0, source: first.source });
  }
}

async function refresh(changed) {
  drawBar();
  drawRail();
  sentence.update(store.state, changed);
  if (changed === null || asksAnew(changed) || changed.includes("view") || changed.includes("seeds")) {
    await sentence.say().catch(complain);
  }
  drawView(changed);
}

store.listen(async (state, changed) => {
  try {
    if (changed.includes("thing")) await openThing();
    await refresh(changed);
  } catch (error) { complain(error); }
});

async function start() {
  startTheme();
  context.things = await ask("things", {}, "things", true);
  if (!context.things.some((one) => one.name === store.state.thing)) {
    store.state.thing = context.things.length ? context.things[0].name : "";
  }
  if (!store.state.thing) throw new Error("There is nothing to explore yet. Train something first.");
  await openThing();
  store.write();
  await refresh(null);
  document.body.dataset.ready = "yes";
}

addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea")) return;
  if (event.key === "/") { event.preventDefault(); document.getElementById("source").focus(); }
  const keys = Object.keys(VIEWS);
  if (/^[1-9]$/.test(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey && keys[event.key - 1]) {
    store.set({ view: keys[event.key - 1] });
  }
});

start().catch(complain);
export { number };
