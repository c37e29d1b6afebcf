// The ledger: every claim, its rule, what was measured, and the view that shows what it is about.

import { ask } from "./api.js";
import { h, fill, choice, number } from "./dom.js";
import { store } from "./state.js";

export class View {
  constructor(context) {
    this.context = context;
    this.head = h("div.row");
    this.list = h("div.scroll", { style: { maxHeight: "none" } });
    this.node = h("div.cards", {}, h("section.card.broad", {}, h("header", {}, h("h2", {}, "The ledger"), this.head), this.list));
  }

  async update() {
    this.rows ||= await ask("claims", {}, "claims");
    const papers = ["all papers", ...new Set(this.rows.map((row) => row.paper))];
    const shown = this.rows.filter((row) => !this.paper || this.paper === "all papers" || row.paper === this.paper);
    const count = (verdict) => shown.filter((row) => row.verdict === verdict).length;
    fill(this.head, choice("", papers, this.paper || "all papers", (value) => { this.paper = value; this.update(); }, { id: "paper" }),
      h("span.hint", {}, `${shown.length} claims: ${count("reproduced")} reproduced, ${count("partly")} partly, ${count("not reproduced")} not, ${count("not run")} not run here`));
    fill(this.list, h("table", { id: "claims" }, h("thead", {}, h("tr", {}, ["claim", "the source says", "measured", "verdict", ""].map((t) => h("th", {}, t)))),
      h("tbody", {}, shown.map((row) => h("tr", {}, h("td", {}, h("b", {}, row.id), h("div.hint", {}, row.figure)), h("td", {}, row.statement, h("div.hint", {}, row.rule)),
        h("td.num", {}, row.measured === null ? "–" : `${row.headline} = ${number(row.measured)}`, h("div.hint", {}, row.interval ? `${number(row.interval[0])} to ${number(row.interval[1])}, n = ${row.seeds}` : row.seeds ? `n = ${row.seeds}` : "")),
        h("td", {}, h("span.verdict", { class: `verdict ${row.verdict.split(" ")[0]}${row.verdict === "not run" ? " none" : ""}` }, row.verdict)),
        h("td", {}, h("button.small", { "aria-label": `Show what ${row.id} is about`, onclick: () => store.set({ view: row.view }) }, "show")))))));
  }
}
