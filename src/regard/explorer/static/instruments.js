// Any instrument, on one run or on all seeds, through the same door as the command line.

import { ask, isStale } from "./api.js";
import { h, fill, choice } from "./dom.js";
import { store } from "./state.js";

export class View {
  constructor(context) {
    this.context = context;
    this.form = h("form.row", { onsubmit: (event) => { event.preventDefault(); this.run(); } });
    this.about = h("p.hint");
    this.out = h("div");
    this.node = h("div.cards", {}, h("section.card.broad", {}, h("header", {}, h("h2", {}, "Instruments"), this.about), this.form, this.out));
  }

  async update(state) {
    this.known ||= await ask("instruments", {}, "instruments");
    const one = this.known.find((i) => i.name === state.instrument) || this.known[0];
    const seeds = this.context.seeds.length;
    fill(this.form, choice("instrument", this.known.map((i) => i.name), one.name, (value) => store.set({ instrument: value }), { id: "instrument" }),
      Object.entries(one.settings).slice(0, 8).map(([name, value]) => h("label.field", {}, h("span", {}, name), h("input", { type: "text", name, value: String(value), placeholder: String(value), style: { width: "92px" } }))),
      seeds > 1 ? h("label.check", {}, h("input", { type: "checkbox", name: "all-seeds", checked: true }), `all ${seeds} seeds`) : null,
      h("button.main", { type: "submit", id: "measure" }, "Measure"));
    this.about.textContent = one.about;
    this.one = one;
    if (this.shown !== `${state.thing} ${one.name}`) fill(this.out);
    this.shown = `${state.thing} ${one.name}`;
  }

  async run() {
    const settings = {};
    for (const [name, value] of Object.entries(this.one.settings)) {
      const typed = this.form.querySelector(`[name="${name}"]`)?.value;
      if (typed !== undefined && typed !== String(value)) settings[name] = typed;
    }
    const all = this.form.querySelector("[name=all-seeds]")?.checked;
    const things = all ? this.context.seeds.map((one) => one.name) : [store.state.thing];
    fill(this.out, h("p.hint", {}, "measuring …"));
    try {
      const found = await ask("inspect", { things, instrument: this.one.name, settings }, "instrument");
      const url = URL.createObjectURL(new Blob([found.svg], { type: "image/svg+xml" }));
      fill(this.out, h("p.hint", {}, `${found.seeds === 1 ? "one run" : `${found.seeds} seeds, 95 % intervals`}`), h("img.figure", { src: url, alt: found.caption }), h("p.hint", {}, found.caption),
        h("div.scroll", {}, h("table", { id: "measured" }, h("thead", {}, h("tr", {}, found.columns.map((c) => h("th", {}, c)))), h("tbody", {}, found.rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell))))))));
    } catch (error) { fill(this.out); if (!isStale(error)) this.context.complain(error); }
  }
}
