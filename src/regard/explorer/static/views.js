// The views, in the order of the rail.

import { View as Attention } from "./attention.js";
import { View as Words } from "./words.js";
import { View as WhatIf } from "./whatif.js";
import { View as Spaces } from "./spaces.js";
import { View as Units } from "./units.js";
import { View as Training } from "./training.js";
import { View as Compare } from "./compare.js";
import { View as Finders } from "./finders.js";
import { View as Instruments } from "./instruments.js";
import { View as Ledger } from "./ledger.js";

export const VIEWS = {
  attention: { title: "Attention", glyph: "▦", about: "Every head, every cell, and the nine terms of its score", View: Attention },
  words: { title: "Words", glyph: "≡", about: "Source words coloured by what they are to one output word", View: Words },
  whatif: { title: "What if", glyph: "⇄", about: "Changes, and what became of them", View: WhatIf },
  spaces: { title: "Spaces", glyph: "◌", about: "States in principal components, and their neighbours", View: Spaces },
  units: { title: "Units", glyph: "∿", about: "Units and gates along the sentence; probes", View: Units },
  training: { title: "Training", glyph: "↗", about: "Curves, and the sentence at every checkpoint", View: Training },
  compare: { title: "Compare", glyph: "◫", about: "Pinned beside present, on one scale", View: Compare },
  finders: { title: "Find", glyph: "⌕", about: "Heads and sentences by what was measured", View: Finders },
  instruments: { title: "Measure", glyph: "∑", about: "Any instrument, over all seeds", View: Instruments },
  ledger: { title: "Ledger", glyph: "✓", about: "Every claim of the papers", View: Ledger },
};
