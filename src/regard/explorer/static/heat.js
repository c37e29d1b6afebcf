// A matrix as colours on a canvas: words at its sides, hover, lock, keys, outlines; any size.

import { h, announce, number, wordName } from "./dom.js";
import { lookup } from "./colours.js";

const LABELLED = 9; // pixels of a cell from which words fit at the sides
const SMALL = 2048;

/** The matrix as an image, a pixel per cell. */
function paint(matrix, kind, low, high) {
  const [rows, columns] = matrix.shape;
  const image = new ImageData(columns, rows);
  const colours = lookup(kind);
  const factor = 255 / (high - low || 1);
  for (let n = 0; n < rows * columns; n++) {
    const place = Math.max(0, Math.min(255, Math.round((matrix.data[n] - low) * factor)));
    image.data[4 * n] = colours[3 * place];
    image.data[4 * n + 1] = colours[3 * place + 1];
    image.data[4 * n + 2] = colours[3 * place + 2];
    image.data[4 * n + 3] = 255;
  }
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** A small picture of a head; small weights are lifted, or they would not be seen at that size. */
export function thumbnail(canvas, matrix, kind = "rising", low = 0, high = 1) {
  const [rows, columns] = matrix.shape;
  const factor = Math.max(1, Math.floor(96 / Math.max(rows, columns, 1)));
  [canvas.width, canvas.height] = [columns * factor, rows * factor];
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  const lifted = { shape: matrix.shape, data: Float32Array.from(matrix.data, (v) => Math.sqrt(Math.max(0, (v - low) / (high - low)))) };
  context.drawImage(paint(lifted, kind, 0, 1), 0, 0, canvas.width, canvas.height);
}

export class Heat {
  /** `onhover` and `onpick` get (row, column), or null. */
  constructor({ label, onhover = () => {}, onpick = () => {}, most = 34, stretch = false }) {
    this.label = label;
    this.stretch = stretch; // cells need not be square
    this.most = most;
    this.onhover = onhover;
    this.onpick = onpick;
    this.canvas = h("canvas.heat", {
      tabIndex: 0, role: "img", "aria-label": label,
      onmousemove: (event) => this.hover(this.find(event)),
      onmouseleave: () => this.hover(null),
      onclick: (event) => this.pick(this.find(event)),
      onkeydown: (event) => this.key(event),
    });
    this.node = h("div.heat-box", {}, this.canvas);
    this.cell = null;
    this.over = null;
    new ResizeObserver(() => this.draw()).observe(this.node);
  }

  /** What is shown: a matrix {shape, data}, the words, the scale, and rows from which to outline. */
  show({ matrix, rows, columns, kind = "rising", low = 0, high = 1, cell = null, from = null }) {
    Object.assign(this, { matrix, rows, columns, kind, low, high, cell, from });
    this.image = paint(matrix, kind, low, high);
    this.canvas.setAttribute("aria-label",
      `${this.label}, ${matrix.shape[0]} by ${matrix.shape[1]}. Arrow keys move, Enter locks.`);
    this.draw();
  }

  value(row, column) {
    return this.matrix.data[row * this.matrix.shape[1] + column];
  }

  layout() {
    const [rows, columns] = this.matrix.shape;
    const style = getComputedStyle(this.canvas);
    this.font = `12px ${style.fontFamily}`;
    const context = this.canvas.getContext("2d");
    context.font = this.font;
    const width = (words) => Math.min(120, Math.max(0, ...words.slice(0, 200).map((w) => context.measureText(wordName(w)).width)));
    const [left, top] = [width(this.rows) + 14, width(this.columns) + 14];
    const box = this.node.getBoundingClientRect();
    const last = this.columns.slice(-1).map((w) => context.measureText(wordName(w)).width)[0] || 0;
    this.right = 8 + Math.min(60, last * 0.56); // the last word leans over the edge
    const room = [Math.max(80, box.width - left - this.right), Math.max(80, (box.height || 420) - 6)];
    const loose = Math.min(this.most, room[0] / columns, (room[1] - Math.min(top, 80)) / rows);
    const across = this.stretch ? Math.min(60, room[0] / columns) : loose;
    const labelled = across >= LABELLED;
    const flat = labelled && Math.max(0, ...this.columns.map((w) => context.measureText(wordName(w)).width)) + 6 <= across;
    this.left = labelled ? left : 6;
    this.top = flat ? 22 : labelled ? top * 0.86 + 6 : 6;
    this.flat = flat;
    this.labelled = labelled;
    const whole = (size) => (size >= 1 ? (size > 4 ? Math.floor(size) : size) : Math.max(size, 0.25));
    const [wide, tall] = [(box.width - this.left - this.right) / columns, (room[1] - this.top) / rows];
    const size = whole(Math.min(this.most, wide, tall));
    [this.wide, this.tall] = this.stretch ? [whole(Math.min(60, wide)), whole(Math.min(this.most, tall))] : [size, size];
  }

  draw() {
    if (!this.matrix || !this.node.isConnected) return;
    const [rows, columns] = this.matrix.shape;
    this.layout();
    const ratio = devicePixelRatio || 1;
    const [width, height] = [this.left + columns * this.wide + this.right, this.top + rows * this.tall + 6];
    this.canvas.width = Math.min(SMALL * 4, Math.ceil(width * ratio));
    this.canvas.height = Math.min(SMALL * 4, Math.ceil(height * ratio));
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.imageSmoothingEnabled = false;
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink");
    context.drawImage(this.image, this.left, this.top, columns * this.wide, rows * this.tall);
    if (Math.min(this.wide, this.tall) >= 8) this.grid(context, style.getPropertyValue("--line"));
    if (this.labelled) this.words(context, ink, style.getPropertyValue("--faint"));
    if (this.from !== null && this.from !== undefined) this.outline(context, style.getPropertyValue("--accent-2"));
    const at = this.over || this.cell;
    if (at && at[0] < rows && at[1] < columns) this.mark(context, at, style.getPropertyValue("--accent"));
    if (this.cell) this.frame(context, this.cell, style.getPropertyValue("--accent"), 2.5);
  }

  grid(context, line) {
    const [rows, columns] = this.matrix.shape;
    context.strokeStyle = line;
    context.lineWidth = 0.5;
    context.beginPath();
    for (let r = 0; r <= rows; r++) {
      context.moveTo(this.left, this.top + r * this.tall);
      context.lineTo(this.left + columns * this.wide, this.top + r * this.tall);
    }
    for (let c = 0; c <= columns; c++) {
      context.moveTo(this.left + c * this.wide, this.top);
      context.lineTo(this.left + c * this.wide, this.top + rows * this.tall);
    }
    context.stroke();
  }

  words(context, ink, faint) {
    const at = this.over || this.cell || [-1, -1];
    context.font = this.font;
    context.textBaseline = "middle";
    if (this.tall >= LABELLED) this.rows.forEach((entry, r) => {
      context.fillStyle = entry.special ? faint : ink;
      context.font = r === at[0] ? `bold ${this.font}` : this.font;
      context.textAlign = "right";
      context.fillText(wordName(entry), this.left - 7, this.top + (r + 0.5) * this.tall, this.left - 8);
    });
    this.columns.forEach((entry, c) => {
      context.save();
      context.fillStyle = entry.special ? faint : ink;
      context.font = c === at[1] ? `bold ${this.font}` : this.font;
      context.translate(this.left + (c + 0.5) * this.wide, this.top - 6);
      if (this.flat) {
        context.textAlign = "center";
        context.fillText(wordName(entry), 0, -5);
      } else {
        context.rotate(-Math.PI / 3.2);
        context.textAlign = "left";
        context.fillText(wordName(entry), 0, 0, 118);
      }
      context.restore();
    });
  }

  mark(context, [row, column], colour) {
    const [rows, columns] = this.matrix.shape;
    context.strokeStyle = colour;
    context.globalAlpha = 0.55;
    context.lineWidth = 1;
    const [x, y] = [this.left + column * this.wide, this.top + row * this.tall];
    context.strokeRect(this.left, y, columns * this.wide, this.tall);
    context.strokeRect(x, this.top, this.wide, rows * this.tall);
    context.globalAlpha = 1;
    this.frame(context, [row, column], colour, 1.5);
  }

  frame(context, [row, column], colour, width) {
    if (row >= this.matrix.shape[0] || column >= this.matrix.shape[1]) return;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.strokeRect(this.left + column * this.wide, this.top + row * this.tall, this.wide, this.tall);
  }

  /** What could have changed at all. */
  outline(context, colour) {
    const [rows, columns] = this.matrix.shape;
    if (this.from >= rows) return;
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.setLineDash([6, 4]);
    context.strokeRect(this.left - 1, this.top + this.from * this.tall, columns * this.wide + 2, (rows - this.from) * this.tall + 1);
    context.setLineDash([]);
  }

  find(event) {
    if (!this.matrix) return null;
    const box = this.canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - this.top) / this.tall);
    const column = Math.floor((event.clientX - box.left - this.left) / this.wide);
    const [rows, columns] = this.matrix.shape;
    return row >= 0 && row < rows && column >= 0 && column < columns ? [row, column] : null;
  }

  hover(at) {
    if (String(at) === String(this.over)) return;
    this.over = at;
    this.draw();
    this.onhover(at);
  }

  pick(at) {
    this.cell = at;
    this.draw();
    this.onpick(at);
    if (at) this.say(at);
  }

  say([row, column]) {
    const name = (words, n) => (words[n] ? wordName(words[n]) : String(n + 1));
    announce(`${name(this.rows, row)}, ${name(this.columns, column)}: ${number(this.value(row, column))}`);
  }

  key(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key === "Escape") return this.pick(null);
    if (event.key === "Enter" && this.over) return this.pick(this.over);
    if (!(event.key in moves) || !this.matrix) return;
    event.preventDefault();
    const [rows, columns] = this.matrix.shape;
    const [row, column] = this.over || this.cell || [0, 0];
    const [down, right] = moves[event.key];
    this.hover([Math.max(0, Math.min(rows - 1, row + down)), Math.max(0, Math.min(columns - 1, column + right))]);
    this.say(this.over);
  }
}

/** The legend of a scale of colours. */
export function legend(kind, low, high, text) {
  const canvas = h("canvas.legend", { width: 128, height: 1, "aria-hidden": "true" });
  const ramp = { shape: [1, 128], data: Float32Array.from({ length: 128 }, (_, n) => n / 127) };
  canvas.getContext("2d").drawImage(paint(ramp, kind, 0, 1), 0, 0);
  return h("div.scale", {}, h("span", {}, text), h("span.num", {}, number(low)), canvas, h("span.num", {}, number(high)));
}
