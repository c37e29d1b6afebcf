// What a head's matrix can show, and what is done to it on its way.

export const SHOWN = [
  ["weights", "α weights"], ["difference", "difference to before"], ["scores", "scores"], ["low", "α, low end of the interval"], ["high", "α, high end of the interval"],
  ["lexical", "log β lexical"], ["saliency", "saliency"], ["ibm1", "IBM model 1"],
  ...["μ·μ", "μ·χ", "μ·Δ", "χ·μ", "χ·χ", "χ·Δ", "Δ·μ", "Δ·χ", "Δ·Δ"].map((name, n) => [`term ${n}`, `term ${name}`]),
];

/** Which scale of colours fits. */
export function range(scale, matrix) {
  if (["weights", "low", "high", "ibm1"].includes(scale)) return { kind: "rising", low: 0, high: 1 };
  let [least, most] = [Infinity, -Infinity];
  for (const value of matrix.data) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
  if (scale === "lexical") return { kind: "rising", low: Math.max(least, most - 12), high: most };
  const reach = Math.max(Math.abs(least), Math.abs(most), 1e-9);
  return { kind: "signed", low: -reach, high: reach };
}

/** Positions by the word that they belong to; what is no word, such as an end, stands alone. */
export function groups(words) {
  const found = [];
  words.forEach((entry, n) => {
    const same = n > 0 && entry.group >= 0 && words[n - 1].group === entry.group;
    if (same) found[found.length - 1].push(n);
    else found.push([n]);
  });
  return found;
}

/** Whether some words are in pieces. */
export const hasPieces = (words) => words.some((entry, n) => n > 0 && entry.group >= 0 && entry.group === words[n - 1].group);

/** Pieces merged to words: sums over keys, means over queries, so that rows still add up to 1. */
export function merged(matrix, rows, columns, how) {
  if (how !== "words" || !matrix) return { matrix, rows, columns };
  const [down, across] = [groups(rows), groups(columns)];
  const width = matrix.shape[1];
  const data = new Float32Array(down.length * across.length);
  down.forEach((ours, r) => across.forEach((theirs, c) => {
    let sum = 0;
    for (const row of ours) for (const column of theirs) sum += matrix.data[row * width + column];
    data[r * across.length + c] = sum / ours.length;
  }));
  const name = (words, group) => ({ word: group.map((n) => (words[n].shown ?? words[n].word).replace(/^\+(?=.)/, "")).join(""), special: words[group[0]].special });
  return { matrix: { shape: [down.length, across.length], data }, rows: down.map((g) => name(rows, g)), columns: across.map((g) => name(columns, g)) };
}
