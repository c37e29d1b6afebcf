// Elements from plain descriptions. Text is always text: nothing here reads markup.

const SVG = "http://www.w3.org/2000/svg";
const DRAWN = new Set(["svg", "g", "path", "line", "circle", "rect", "text", "polyline", "polygon", "title"]);

/** h("button.small", {onclick}, "Say it"): a tag with classes, properties, children. */
export function h(what, properties = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const drawn = DRAWN.has(tag);
  const node = drawn ? document.createElementNS(SVG, tag) : document.createElement(tag || "div");
  if (classes.length) node.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value);
    else if (name === "data") Object.assign(node.dataset, value);
    else if (!drawn && name in node && name !== "list" && name !== "role") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Puts children in the place of what was there. */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Three digits that matter, as in the tables of the command line. */
export function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  if (size < 1e-4) return value.toExponential(1);
  return String(Number(value.toPrecision(digits)));
}

export const percent = (p) => (p >= 0.9995 ? "100 %" : p < 0.001 ? "<0.1 %" : `${(100 * p).toFixed(p < 0.1 ? 1 : 0)} %`);

/** A labelled choice. */
export function choice(label, options, value, onchange, properties = {}) {
  const select = h("select", { ...properties, onchange: (event) => onchange(event.target.value) },
    options.map((option) => {
      const [key, text] = Array.isArray(option) ? option : [option, option];
      return h("option", { value: key, selected: String(key) === String(value) }, text);
    }));
  return h("label.field", {}, h("span", {}, label), select);
}

/** Says something to who listens instead of looking. */
export function announce(text) {
  document.getElementById("said").textContent = text;
}

/** A word as it is shown: pieces that go on with a word begin with +, nothing is `∅`. */
export function wordName(entry) {
  return (entry.shown ?? entry.word) || "∅";
}

export function debounce(call, wait) {
  let timer = null;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...values), wait);
  };
}
