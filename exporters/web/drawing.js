// A picture of a block on a canvas: a row for each token, colours for numbers, the row that is
// looked at outlined, and names and numbers where there is room for them.

import { brief, colourOf, colours, element } from "./dom.js";

/** @typedef {import("./graph.js").Block} Block */
/** What is drawn: `numbers` row by row, `rows` of them shown, `cols` in each; `at`, the row that is
 * looked at, or -1; `labels` of the rows; `full`, the number with the full colour.
 * @typedef {{numbers: ArrayLike<number>, rows: number, cols: number, stride: number, at: number, labels: string[],
 *   isShare: boolean, full: number, seen: (i: number, j: number) => boolean}} Drawing */
/** Where a drawing stands in its canvas. @typedef {{left: number, wide: number, high: number}} Frame */

const LABEL_FONT = "11px system-ui, sans-serif";
const LEAST_LABELLED = 10;

/** The number up to which a share of a row are: a few large ones do not pale the rest.
 * @param {ArrayLike<number>} numbers @param {number} from @param {number} n @param {number} [share] */
export function fullOf(numbers, from, n, share = 0.98) {
  const step = Math.max(1, Math.floor(n / 4000));
  const sizes = [];
  for (let k = from; k < from + n; k += step) if (Number.isFinite(numbers[k])) sizes.push(Math.abs(numbers[k]));
  sizes.sort((a, b) => a - b);
  return sizes[Math.floor(share * (sizes.length - 1))] || sizes[sizes.length - 1] || 1;
}

/** Draws into a canvas of a width; returns where the cells are.
 * @param {HTMLCanvasElement} canvas @param {Drawing} drawing @param {number} pitch height of a row
 * @param {number} found the canvas's width, 0 where nothing is laid out @returns {Frame} */
export function draw(canvas, drawing, pitch, found) {
  const scale = window.devicePixelRatio || 1;
  const width = found || 100;
  const height = Math.max(4, Math.round(pitch * drawing.rows));
  sized(canvas, Math.round(width * scale), Math.round(height * scale));
  canvas.style.setProperty("height", `${height}px`);
  const pen = canvas.getContext("2d");
  if (!pen) return { left: 0, wide: width, high: height };
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = LABEL_FONT;
  const left = pitch >= LEAST_LABELLED && drawing.labels.length && width > 130 ? widthOfLabels(pen, drawing.labels, width) : 0;
  const frame = { left, wide: width - left, high: height };
  cells(pen, drawing, frame, scale);
  names(pen, drawing, frame, pitch);
  if (frame.wide / drawing.cols >= 27 && pitch >= 12) figures(pen, drawing, frame, pitch);
  outline(pen, drawing, frame, pitch);
  return frame;
}

/** @param {CanvasRenderingContext2D} pen @param {string[]} labels @param {number} width */
function widthOfLabels(pen, labels, width) {
  const longest = Math.max(...labels.map((label) => pen.measureText(label).width));
  return Math.min(Math.ceil(longest) + 8, Math.floor(width / 3));
}

/** Gives a canvas a size: a new one costs more than all that is drawn. @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
function sized(canvas, width, height) {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
}

/** The canvas from which images are enlarged: the same one for all. @type {CanvasRenderingContext2D | null} */
let colouring = null;

/** The colours: one point of an image for each pixel's column; of several numbers the one farthest
 * from 0.
 * @param {CanvasRenderingContext2D} pen @param {Drawing} drawing @param {Frame} frame @param {number} scale */
function cells(pen, drawing, frame, scale) {
  const { rows, cols, numbers, stride } = drawing;
  const across = Math.min(cols, Math.max(1, Math.round(frame.wide * scale)));
  const image = new ImageData(across, rows);
  for (let i = 0, p = 0; i < rows; i++) {
    for (let x = 0; x < across; x++) {
      const j = farthest(drawing, i, x, across);
      const seen = drawing.seen(i, j);
      const colour = seen ? colourOf(numbers[i * stride + j], drawing.full, drawing.isShare) : [0, 0, 0];
      for (const part of colour) image.data[p++] = part;
      image.data[p++] = seen ? 255 : 0;
    }
  }
  colouring ??= element("canvas").getContext("2d", { willReadFrequently: true });
  if (!colouring) return;
  const small = colouring.canvas;
  sized(small, Math.max(small.width, across), Math.max(small.height, rows));
  colouring.putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(small, 0, 0, across, rows, frame.left, 0, frame.wide, frame.high);
}

/** The column that stands for those under a pixel's column: the one farthest from 0.
 * @param {Drawing} drawing @param {number} i @param {number} x @param {number} across */
function farthest({ numbers, cols, stride }, i, x, across) {
  const from = Math.floor((x * cols) / across);
  const to = Math.max(from + 1, Math.floor(((x + 1) * cols) / across));
  let found = from;
  for (let j = from + 1; j < to; j++) {
    if (Math.abs(numbers[i * stride + j]) > Math.abs(numbers[i * stride + found])) found = j;
  }
  return found;
}

/** The texts of the rows. @param {CanvasRenderingContext2D} pen @param {Drawing} drawing @param {Frame} frame @param {number} pitch */
function names(pen, drawing, frame, pitch) {
  if (!frame.left) return;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (let i = 0; i < drawing.rows; i++) {
    pen.fillStyle = i === drawing.at ? `rgb(${colours().ink})` : colours().soft;
    pen.fillText(drawing.labels[i], frame.left - 5, (i + 0.5) * pitch, frame.left - 6);
  }
}

/** The numbers themselves. @param {CanvasRenderingContext2D} pen @param {Drawing} drawing @param {Frame} frame @param {number} pitch */
function figures(pen, drawing, frame, pitch) {
  const { ink, paper } = colours();
  const wide = frame.wide / drawing.cols;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (let i = 0; i < drawing.rows; i++) {
    for (let j = 0; j < drawing.cols; j++) {
      if (!drawing.seen(i, j)) continue;
      const x = drawing.numbers[i * drawing.stride + j];
      const text = drawing.isShare ? String(Math.round(100 * x)) : wide < 42 ? x.toFixed(1) : brief(x);
      pen.fillStyle = `rgb(${Math.abs(x) > 0.55 * drawing.full ? paper : ink})`;
      pen.fillText(text, frame.left + (j + 0.5) * wide, (i + 0.5) * pitch, wide - 2);
    }
  }
}

/** A line about the row that is looked at. @param {CanvasRenderingContext2D} pen @param {Drawing} drawing @param {Frame} frame @param {number} pitch */
function outline(pen, drawing, frame, pitch) {
  if (drawing.at < 0 || drawing.rows < 2) return;
  const beyond = pitch < 12 ? 1 : 0;
  const top = Math.max(1, drawing.at * pitch - beyond + 1 - beyond);
  const bottom = Math.min(frame.high - 1, (drawing.at + 1) * pitch + 2 * beyond - 1);
  pen.strokeStyle = colours().here;
  pen.lineWidth = pitch < 12 ? 1.5 : 2;
  pen.strokeRect(frame.left + 1, top, frame.wide - 2, Math.max(2, bottom - top));
}

/** The cell under a point of a canvas: [row, column]. @param {Drawing} drawing @param {Frame} frame @param {number} x @param {number} y */
export function cellAt(drawing, frame, x, y) {
  const across = Math.min(drawing.cols, Math.max(1, Math.round(frame.wide)));
  const i = Math.max(0, Math.min(drawing.rows - 1, Math.floor((y / frame.high) * drawing.rows)));
  const at = Math.max(0, Math.min(across - 1, Math.floor(((x - frame.left) / frame.wide) * across)));
  return [i, farthest(drawing, i, at, across)];
}
