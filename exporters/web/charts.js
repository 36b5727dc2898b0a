// The simple charts of a sheet, as pictures in vectors: columns, bars, lines, points.

import { element, vector } from "./dom.js";
import { formatted, general } from "./format.js";

/** A series with its values. @typedef {{name: string, x: any[], y: number[], labels: string[],
 *   colour: string, joined: boolean, bears: string}} Series */
/** @typedef {{kind: string, title: string, size: [number, number], axes: [string, string],
 *   joined: boolean, number: string, across: string, shares: boolean, reach: number, series: Series[]}} Chart */
/** An axis: from the least to the largest, and its ticks. @typedef {{low: number, high: number, ticks: number[]}} Axis */
/** Where an axis runs, in pixels. @typedef {{at: (x: number) => number}} Scale */

const EDGE = { top: 30, right: 14, bottom: 26, left: 48 };
const LETTER = 5.8;
const HEAVY_LETTER = 7.4;
const SIDES = new Map([["right", [8, 4, "start"]], ["left", [-8, 4, "end"]], ["above", [0, -8, "middle"]], ["below", [0, 16, "middle"]]]);

/** Even steps that span some numbers. @param {number[]} numbers @param {boolean} fromZero @param {number} n @returns {Axis} */
function axisOf(numbers, fromZero, n) {
  const known = numbers.filter(Number.isFinite);
  let low = Math.min(...known, ...(fromZero || !known.length ? [0] : []));
  let high = Math.max(...known, ...(fromZero || !known.length ? [0] : []));
  const edge = fromZero ? 0 : 0.03 * (high - low);
  [low, high] = [low && low - edge, high && high + edge];
  if (high - low < 1e-12) [low, high] = [low - (fromZero ? 0 : 0.5), high + (fromZero ? 1 : 0.5)];
  const rough = (high - low) / n;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * ([1, 2, 5, 10].find((k) => k * unit >= rough * 0.999) ?? 10);
  const [first, last] = [Math.floor(low / step + 1e-9), Math.ceil(high / step - 1e-9)];
  return within(first * step, last * step, last - first);
}

/** @param {number} low @param {number} high @param {number} n @returns {Axis} */
function within(low, high, n) {
  const ticks = Array.from({ length: n + 1 }, (_, k) => Number((low + ((high - low) * k) / n).toPrecision(12)));
  return { low, high, ticks };
}

/** As far below 0 as above, in steps of halves if they fit. @param {number} reach */
function about(reach) {
  return within(-reach, reach, [4, 6, 8, 10].find((n) => Number.isInteger((20 * reach) / n)) ?? 4);
}

/** @param {Axis} axis @param {number} from @param {number} to @returns {Scale} */
function scale({ low, high }, from, to) {
  return { at: (x) => from + ((x - low) / (high - low)) * (to - from) };
}

/** A chart drawn: a figure. @param {Chart} chart @returns {HTMLElement} */
export function chartFigure(chart) {
  const [width, height] = chart.size;
  const told = chart.series.filter((series) => series.name).length > 1 && !chart.series.some((series) => series.bears);
  const heading = wrapped(chart.title, Math.floor((width - 16) / HEAVY_LETTER));
  const top = EDGE.top + 16 * (heading.length - 1);
  const area = { left: EDGE.left, top, right: width - EDGE.right, bottom: height - EDGE.bottom };
  if (chart.axes[0] && chart.kind !== "bar") area.bottom -= 16;
  if (chart.axes[1] && chart.kind !== "bar") area.left += 14;
  const names = told ? seriesNames(chart, width, height) : [];
  area.bottom -= 20 * names.length;
  const parts = chart.kind === "bar" ? bars(chart, area) : chart.kind === "scatter" ? points(chart, area) : columns(chart, area);
  const title = heading.map((line, k) => vector("text", { x: width / 2, y: 18 + 16 * k, class: "title", "text-anchor": "middle" }, line));
  const picture = vector("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": spoken(chart) }, ...title, ...parts, ...names.flat());
  return element("figure", { class: "chart" }, picture);
}

/** A text in lines of so many letters. @param {string} text @param {number} most */
function wrapped(text, most) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = `${lines[lines.length - 1]} ${word}`.trim();
    if (line.length > most && lines[lines.length - 1]) lines.push(word);
    else lines[lines.length - 1] = line;
  }
  return lines;
}

/** A chart for those who do not see it. @param {Chart} chart */
function spoken(chart) {
  const most = chart.series.length > 3 ? 4 : 12;
  const told = chart.series.slice(0, 4).map(({ name, x, y }) => {
    const numbers = y.slice(0, most).map((value, k) => `${x[k] ?? ""} ${formatted(value, chart.number)}`);
    return (name ? `${name}: ` : "") + numbers.join(", ") + (y.length > most ? ", …" : "");
  });
  return `${chart.title}. ${told.join("; ")}`;
}

/** The names of series with their colours, line by line. @param {Chart} chart @param {number} width @param {number} height */
function seriesNames(chart, width, height) {
  /** @type {{k: number, name: string, x: number}[][]} */ const lines = [[]];
  let x = 8;
  for (const [k, { name }] of chart.series.entries()) {
    const room = 26 + LETTER * name.length;
    if (name && x + room > width && x > 8) [x] = [8, lines.push([])];
    if (name) lines[lines.length - 1].push({ k, name, x });
    if (name) x += room;
  }
  return lines.map((line, n) => {
    const y = height - 8 - 18 * (lines.length - 1 - n);
    return line.flatMap(({ k, name, x: left }) => [
      coloured(vector("rect", { x: left, y: y - 8, width: 9, height: 9 }), chart, k),
      vector("text", { x: left + 13, y }, name),
    ]);
  });
}

/** @param {SVGElement} mark @param {Chart} chart @param {number} k */
function coloured(mark, chart, k) {
  const { colour } = chart.series[k];
  mark.classList.add("mark", chart.series.length > 1 ? `s${k % 4}` : "s1");
  if (colour) mark.style.setProperty("--mark", colour);
  return mark;
}

/** Lines and texts along the axis of values, which runs up or across.
 * @param {string} number @param {Axis} axis @param {Scale} along @param {any} area @param {boolean} across */
function gridlines(number, axis, along, area, across) {
  const texts = axis.ticks.map((tick) => formatted(tick, number));
  if (new Set(texts).size < texts.length) for (const [k, tick] of axis.ticks.entries()) texts[k] = general(tick);
  return axis.ticks.flatMap((tick, k) => {
    const at = along.at(tick);
    const ends = across ? { x1: at, x2: at, y1: area.top, y2: area.bottom } : { x1: area.left, x2: area.right, y1: at, y2: at };
    const text = across ? { x: at, y: area.bottom + 14, "text-anchor": "middle" } : { x: area.left - 5, y: at + 4, "text-anchor": "end" };
    return [vector("line", { ...ends, class: tick === 0 ? "zero" : "line" }), vector("text", text, texts[k])];
  });
}

/** Titles of the axes. @param {Chart} chart @param {any} area */
function axisTitles(chart, area) {
  const [x, y] = chart.axes;
  const middle = (area.top + area.bottom) / 2;
  const parts = [];
  if (x) parts.push(vector("text", { x: (area.left + area.right) / 2, y: area.bottom + 31, "text-anchor": "middle" }, x));
  if (y) parts.push(vector("text", { x: 13, y: middle, transform: `rotate(-90 13 ${middle})`, "text-anchor": "middle" }, y));
  return parts;
}

/** @param {Chart} chart @param {number} n @param {boolean} fromZero */
function valueAxis(chart, n, fromZero) {
  if (chart.shares) return within(0, 1, 5);
  if (chart.reach) return about(chart.reach);
  return axisOf(chart.series.flatMap((series) => series.y), fromZero, n);
}

/** Columns, or lines from category to category. @param {Chart} chart @param {any} area @returns {SVGElement[]} */
function columns(chart, area) {
  const axis = valueAxis(chart, 5, true);
  const along = scale(axis, area.bottom, area.top);
  const categories = chart.series[0].x;
  const room = (area.right - area.left) / Math.max(1, categories.length);
  const each = (room * 0.62) / chart.series.length;
  const every = Math.ceil((LETTER * Math.max(...categories.map((x) => String(x).length), 1) + 4) / room);
  const texts = categories.flatMap((text, k) =>
    k % every ? [] : [vector("text", { x: area.left + room * (k + 0.5), y: area.bottom + 14, "text-anchor": "middle" }, String(text))],
  );
  const marks = chart.series.flatMap((series, n) => {
    const places = series.y.map((y, k) => [area.left + room * (k + 0.5), along.at(y), y]).filter(([, y]) => Number.isFinite(y));
    if (chart.kind === "line") return joinedPoints(chart, n, places);
    return places.map(([x, y, value], k) => {
      const [top, bottom] = [Math.min(y, along.at(0)), Math.max(y, along.at(0))];
      const at = { x: x - room * 0.31 + n * each, y: top, width: Math.max(1, each), height: bottom - top };
      return coloured(vector("rect", at, tip(chart, series, categories[k], value)), chart, n);
    });
  });
  return [...gridlines(chart.number, axis, along, area, false), ...texts, ...axisTitles(chart, area), ...marks];
}

/** Bars from left to right, the first category on top. @param {Chart} chart @param {any} area @returns {SVGElement[]} */
function bars(chart, area) {
  const categories = chart.series[0].x.map(String);
  area.left = Math.min(area.right / 2, 14 + LETTER * Math.max(...categories.map((x) => x.length)));
  const axis = valueAxis(chart, 5, true);
  const along = scale(axis, area.left, area.right);
  const room = (area.bottom - area.top) / Math.max(1, categories.length);
  const each = (room * 0.62) / chart.series.length;
  const texts = categories.map((text, k) => vector("text", { x: area.left - 6, y: area.top + room * (k + 0.5) + 4, "text-anchor": "end" }, text));
  const marks = chart.series.flatMap((series, n) =>
    series.y.map((value, k) => {
      const [left, right] = [Math.min(along.at(0), along.at(value)), Math.max(along.at(0), along.at(value))];
      const at = { x: left, y: area.top + room * (k + 0.19) + n * each, width: right - left || 0, height: each };
      return coloured(vector("rect", at, tip(chart, series, categories[k], value)), chart, n);
    }),
  );
  return [...gridlines(chart.number, axis, along, area, true), ...texts, ...marks];
}

/** Points, with lines between them where they are joined. @param {Chart} chart @param {any} area @returns {SVGElement[]} */
function points(chart, area) {
  const y = valueAxis(chart, 6, false);
  const numbers = chart.series.flatMap((series) => series.x.map(Number));
  const x = chart.reach ? about(chart.reach) : axisOf(numbers, false, 6);
  const [across, up] = [scale(x, area.left, area.right), scale(y, area.bottom, area.top)];
  const marks = chart.series.flatMap((series, n) => {
    const places = series.x.map((value, k) => [across.at(Number(value)), up.at(series.y[k]), series.y[k]]);
    return joinedPoints(chart, n, places.filter((place) => place.every(Number.isFinite)));
  });
  return [...gridlines(chart.across, x, across, area, true), ...gridlines(chart.number, y, up, area, false), ...axisTitles(chart, area), ...marks];
}

/** The points of a series. @param {Chart} chart @param {number} n @param {number[][]} places @returns {SVGElement[]} */
function joinedPoints(chart, n, places) {
  const series = chart.series[n];
  const line = chart.kind === "line" || chart.joined || series.joined;
  const parts = line ? [coloured(vector("polyline", { points: places.map(([x, y]) => `${x},${y}`).join(" ") }), chart, n)] : [];
  if (series.joined) return parts;
  for (const [k, [x, y, value]] of places.entries()) {
    parts.push(coloured(vector("circle", { cx: x, cy: y, r: 4 }, tip(chart, series, series.x[k], value)), chart, n));
    const [right, down, anchor] = SIDES.get(series.bears) ?? [0, -8, "middle"];
    const label = series.bears ? series.name : series.labels[k];
    if (label) parts.push(vector("text", { x: x + Number(right), y: y + Number(down), "text-anchor": anchor }, label));
  }
  return parts;
}

/** What a mark says when it is pointed at. @param {Chart} chart @param {Series} series @param {any} x @param {number} y */
function tip(chart, series, x, y) {
  const where = typeof x === "number" ? formatted(x, chart.across) : String(x ?? "");
  return vector("title", {}, (series.name ? `${series.name}, ` : "") + `${where}: ${formatted(y, chart.number)}`);
}
