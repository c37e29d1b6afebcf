// Scales of colours that all common kinds of colour vision can read, in light and in dark.

const SCALES = {
  light: {
    rising: ["#ffffff", "#d6e6f4", "#8fc1de", "#3787c0", "#125ea6", "#08306b"],
    signed: ["#2166ac", "#7fb3d6", "#f7f7f7", "#f0a080", "#b2182b"],
  },
  dark: {
    rising: ["#16191f", "#20344f", "#22577a", "#2a8c8c", "#7ccf8a", "#fbe96b"],
    signed: ["#6db3f2", "#2b5f92", "#1c1f26", "#9c4a2f", "#ffab70"],
  },
};
// Okabe and Ito's palette.
export const PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7a7a7a"];

const parse = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

function table(stops) {
  const colours = stops.map(parse);
  const found = new Uint8Array(256 * 3);
  for (let n = 0; n < 256; n++) {
    const place = (n / 255) * (colours.length - 1);
    const low = Math.min(Math.floor(place), colours.length - 2);
    for (let c = 0; c < 3; c++) {
      found[3 * n + c] = Math.round(colours[low][c] + (colours[low + 1][c] - colours[low][c]) * (place - low));
    }
  }
  return found;
}

const tables = {};
export const theme = () => document.documentElement.dataset.theme || "light";

/** 256 colours, three bytes each. */
export function lookup(kind) {
  const key = `${theme()} ${kind}`;
  tables[key] ||= table(SCALES[theme()][kind]);
  return tables[key];
}

/** The colour of a number between low and high. */
export function colour(kind, value, low = 0, high = 1) {
  const found = lookup(kind);
  const n = Math.max(0, Math.min(255, Math.round(((value - low) / (high - low || 1)) * 255)));
  return `rgb(${found[3 * n]} ${found[3 * n + 1]} ${found[3 * n + 2]})`;
}

/** Whether text on that colour has to be light. */
export function isDark(kind, value, low = 0, high = 1) {
  const found = lookup(kind);
  const n = Math.max(0, Math.min(255, Math.round(((value - low) / (high - low || 1)) * 255)));
  return 0.3 * found[3 * n] + 0.59 * found[3 * n + 1] + 0.11 * found[3 * n + 2] < 140;
}
