// What a head's matrix can show, and what is done to it on its way.

export const SHOWN = [
  ["weights", "α weights"], ["difference", "difference to before"], ["scores", "scores"], ["mean", "α, mean over seeds"], ["low", "α, low end"], ["high", "α, high end"],
  ["lexical", "log β lexical"], ["saliency", "saliency"], ["ibm1", "IBM model 1"],
  ...["μ·μ", "μ·χ", "μ·Δ", "χ·μ", "χ·χ", "χ·Δ", "Δ·μ", "Δ·χ", "Δ·Δ"].map((name, n) => [`term ${n}`, `term ${name}`]),
];

export const difference = (now, before) => {
  if (!before || before.shape.join() !== now.shape.join()) return { shape: now.shape, data: now.data, grown: true };
  return { shape: now.shape, data: now.data.map((value, n) => value - before.data[n]) };
};

/** Which scale of colours fits. */
export function range(scale, matrix) {
  if (["weights", "mean", "low", "high", "ibm1"].includes(scale)) return { kind: "rising", low: 0, high: 1 };
  let [least, most] = [Infinity, -Infinity];
  for (const value of matrix.data) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
  if (scale === "lexical") return { kind: "rising", low: Math.max(least, most - 12), high: most };
  const reach = Math.max(Math.abs(least), Math.abs(most), 1e-9);
  return { kind: "signed", low: -reach, high: reach };
}

/** Which word each piece belongs to: pieces that begin with a mark begin a word. */
export function groups(words) {
  const marked = words.some((entry) => /^[▁Ġ]/.test(entry.word));
  const ends = words.some((entry) => /@@$/.test(entry.word));
  const dashed = words.some((entry) => /^##/.test(entry.word));
  const found = [];
  words.forEach((entry, n) => {
    const previous = words[n - 1];
    const starts = n === 0 || entry.special || previous.special
      || (marked ? /^[▁Ġ]/.test(entry.word) : ends ? !/@@$/.test(previous.word) : dashed ? !/^##/.test(entry.word) : true);
    if (starts) found.push([]);
    found[found.length - 1].push(n);
  });
  return found;
}

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
  const name = (words, group) => ({ word: group.map((n) => words[n].word.replace(/^(▁|Ġ|##)|@@$/g, "")).join("") || words[group[0]].word, special: words[group[0]].special });
  return { matrix: { shape: [down.length, across.length], data }, rows: down.map((g) => name(rows, g)), columns: across.map((g) => name(columns, g)) };
}
