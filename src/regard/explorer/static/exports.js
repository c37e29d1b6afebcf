// Saving: the address, one page, a figure, a table, or the lines of Python that give the same.

import { ask, download } from "./api.js";
import { h, fill } from "./dom.js";
import { store, question } from "./state.js";

const FORMS = [["html", "One HTML page", "regard.html"], ["svg", "Figure (SVG)", "regard.svg"], ["csv", "Table (CSV)", "regard.csv"], ["python", "Lines of Python", "regard.py"]];

export function exportMenu(context) {
  const list = h("div", { hidden: true, role: "menu" });
  const close = () => { list.hidden = true; button.setAttribute("aria-expanded", "false"); };
  const save = async (form, name) => {
    close();
    const { state } = store;
    if (!state.site) return context.complain(new Error("There is no attention to save. Save from the instruments instead."));
    const cell = state.cell ? { step: state.cell[0], source_step: state.cell[1] } : {};
    try {
      download(name, await ask("export", { ...question(), site: state.site, head: state.head, form, ...cell }, "export", true));
    } catch (error) { context.complain(error); }
    return null;
  };
  const copy = async () => {
    close();
    try { await navigator.clipboard.writeText(location.href); } catch { prompt("The address:", location.href); }
  };
  const button = h("button", { id: "save", "aria-haspopup": "menu", "aria-expanded": "false", onclick: () => { list.hidden = !list.hidden; button.setAttribute("aria-expanded", String(!list.hidden)); list.querySelector("button").focus(); } }, "Save");
  fill(list, h("button", { role: "menuitem", onclick: copy }, "Copy the address (it holds everything)"), FORMS.map(([form, title, name]) => h("button", { role: "menuitem", id: `save-${form}`, onclick: () => save(form, name) }, title)));
  return h("div.menu", { onkeydown: (event) => { if (event.key === "Escape") { close(); button.focus(); } } }, button, list);
}
