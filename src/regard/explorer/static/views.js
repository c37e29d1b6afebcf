// The views, in the order of the rail.

import { View as Attention } from "./attention.js";

export const VIEWS = {
  attention: { title: "Attention", glyph: "▦", about: "Every head, every cell, and the nine terms of its score", View: Attention },
};
