import { h } from "./dom.js";
export function exportMenu() { return h("span"); }
