"use strict";
// What a reader can ask of the report: tables sort, filter and save; curves show values, switch levels and save. Maps
// are in maps.js.
// Text from the data only ever becomes text (textContent, setAttribute); nothing is fetched or evaluated.

const SVG = "http://www.w3.org/2000/svg";
const GREY = "#757575", INK = "#222222", SOFT = "#555555", LINE = "#bbbbbb";
const MOST_PANELS = 30;
const HINT = "Point at a curve or move the slider to read its values.";
const MAP_HINT = "Point at the map or move the slider to read its values.";

const fill = (element, attributes, inside) => {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...inside);
  return element;
};
const make = (tag, attributes = {}, ...inside) => fill(document.createElement(tag), attributes, inside);
const shape = (tag, attributes = {}, ...inside) => fill(document.createElementNS(SVG, tag), attributes, inside);
const button = (text, act, attributes = {}) => {
  const made = make("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", act);
  return made;
};

// --- files -----------------------------------------------------------------------------------------------------------

const fileName = (words, ending) =>
  `${words.normalize("NFKC").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 60) || "unnorm"}.${ending}`;

function save(name, parts, type) {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

const quoted = (cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
const csv = (rows) => rows.map((row) => row.map((cell) => quoted(String(cell))).join(",") + "\r\n").join("");

function bytes(uri) {
  const [head, body] = [uri.slice(0, uri.indexOf(",")), uri.slice(uri.indexOf(",") + 1)];
  if (!head.endsWith(";base64")) return decodeURIComponent(body);
  return Uint8Array.from(atob(body), (letter) => letter.charCodeAt(0));
}

async function savePng(name, uri, scale) {
  const image = new Image();
  image.src = uri;
  await image.decode();
  const canvas = make("canvas", { width: Math.round(image.naturalWidth * scale), height: Math.round(image.naturalHeight * scale) });
  const paper = canvas.getContext("2d");
  paper.fillStyle = "#ffffff";
  paper.fillRect(0, 0, canvas.width, canvas.height);
  paper.drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(name, [blob], "image/png"), "image/png");
}

// Buttons that save a figure. `svg()` gives its text; `rows()`, where there is one, its numbers.
function downloads(figure, svg, rows, about = "Numbers of the curves shown, rounded to what the picture shows.") {
  const words = figure.querySelector("figcaption").textContent;
  const uri = (text) => (typeof text === "string" ? "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text) : null);
  const inside = [
    button("SVG", () => save(fileName(words, "svg"), [svg()], "image/svg+xml")),
    button("PNG", () => savePng(fileName(words, "png"), uri(svg()) ?? figure.querySelector("img").src, 3)),
  ];
  if (rows) {
    inside.push(button("CSV", () => save(fileName(words, "csv"), [csv(rows())], "text/csv")));
    inside.push(make("span", {}, about));
  }
  const whose = make("span", { class: "unseen" }, ` ${words}`);
  figure.append(make("details", { class: "save" }, make("summary", {}, "Download", whose), make("div", {}, ...inside)));
}

// --- tables ----------------------------------------------------------------------------------------------------------

const valueOf = (cell) => ("value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent);
const missing = (value) => value === "–" || value === "";

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return a.localeCompare(b, undefined, { numeric: true });
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, i) => {
    const act = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows].map((row, place) => [valueOf(row.cells[i]), place, row]);
      rows.sort((a, b) => missing(a[0]) - missing(b[0]) || (down ? -1 : 1) * compare(a[0], b[0]) || a[1] - b[1]);
      table.tBodies[0].append(...rows.map((entry) => entry[2]));
    };
    head.replaceChildren(button(head.textContent || "name", act));
  });
}

// A cell as a number where its text is one ("1,234", "< 0.001"), with all its digits; else its text.
function plain(cell) {
  const text = cell.textContent.trim();
  if (missing(text)) return "";
  return "value" in cell.dataset && /^[<+−-]?\s*[\d.,]+(e[+-]?\d+)?( %)?$/i.test(text) ? cell.dataset.value : text;
}

function tools(table) {
  const caption = table.caption.textContent, rows = [...table.tBodies[0].rows];
  const bar = make("div", { class: "tools" });
  if (rows.length > 5) {
    const field = make("input", { type: "search", autocomplete: "off", spellcheck: "false" });
    const status = make("span", { role: "status" });
    field.addEventListener("input", () => {
      const words = field.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
      const shown = rows.filter((row) => {
        const text = [...row.cells].map((cell) => cell.textContent.toLocaleLowerCase()).join("\n");
        row.hidden = !words.every((word) => text.includes(word));
        return !row.hidden;
      });
      status.textContent = words.length ? `${shown.length} of ${rows.length} rows` : "";
    });
    bar.append(make("label", {}, "Filter rows ", make("span", { class: "unseen" }, `of ${caption} `), field), status);
  }
  const heads = [...table.tHead.rows[0].cells].map((head) => head.textContent);
  const body = () => [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => [...row.cells].map(plain));
  const act = () => save(fileName(caption, "csv"), [csv([heads, ...body()])], "text/csv");
  bar.append(button("Download CSV", act, { "aria-label": `Download CSV of ${caption}` }));
  table.closest(".scroll").before(bar);
}

// --- numbers of the curves -------------------------------------------------------------------------------------------

// Integers as first value and steps (interactive.py), back to numbers.
function decoded(steps, places) {
  let sum = 0;
  return steps.map((step) => {
    if (step === null) return NaN;
    sum += step;
    return places < 0 ? sum * 10 ** -places : sum / 10 ** places;
  });
}

function readSet(set) {
  const x = decoded(set.x, set.dx);
  const curves = set.curves.map((one) => ({
    ...one,
    x: one.x ? decoded(one.x, set.dx) : x,
    y: decoded(one.y, set.dy),
    band: one.band?.map((values) => decoded(values, set.dy)),
    outer: one.outer?.map((values) => decoded(values, set.dy)),
  }));
  return { dx: set.dx, dy: set.dy, x, curves };
}

const minus = (text) => text.replace("-", "−");
const written = (value, places) =>
  minus(Number.isNaN(value) ? "–" : Math.abs(places) > 6 ? value.toPrecision(4) : value.toFixed(Math.max(places, 0)));

function nearest(values, at) {
  const gaps = values.map((value) => (Number.isNaN(value) ? Infinity : Math.abs(value - at)));
  return gaps.indexOf(Math.min(...gaps));
}

// Round numbers from low to high.
function ticks(low, high, about) {
  const raw = (high - low) / about, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * (raw / power >= 7.07 ? 10 : raw / power >= 3.16 ? 5 : raw / power >= 1.41 ? 2 : 1);
  const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const out = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
    out.push([k * step, minus(Math.abs(k * step) >= 1e5 || places > 5 ? (k * step).toPrecision(2) : (k * step).toFixed(places))]);
  }
  return out;
}
const ANGLES = [[-Math.PI, "−π"], [-Math.PI / 2, "−π/2"], [0, "0"], [Math.PI / 2, "π/2"], [Math.PI, "π"]];
const SIDES = ["left", "down", "right", "up", "left"]; // of directions, not of turns

// --- one pair of axes ------------------------------------------------------------------------------------------------

const finite = (values) => values.filter(Number.isFinite);
const words = (text, x, y, more = {}) =>
  shape("text", { x, y, "font-size": 11, fill: SOFT, "font-family": "system-ui, sans-serif", ...more }, text);

class Axes {
  constructor(chart, box, size, x, y) {
    [this.chart, this.box, this.size, this.xs, this.ys] = [chart, box, size, x, y];
    this.svg = shape("svg", { xmlns: SVG, viewBox: `0 0 ${size[0]} ${size[1]}`, width: size[0], height: size[1] });
    this.marks = shape("g", { "data-cursor": "" });
  }
  across(value) { return this.box[0] + ((value - this.xs[0]) / (this.xs[1] - this.xs[0])) * (this.box[2] - this.box[0]); }
  up(value) {
    const share = Math.min(1, Math.max(0, (value - this.ys[0]) / (this.ys[1] - this.ys[0])));
    return this.box[3] - share * (this.box[3] - this.box[1]);
  }
  back(pixel) { return this.xs[0] + ((pixel - this.box[0]) / (this.box[2] - this.box[0])) * (this.xs[1] - this.xs[0]); }
  points(curve, values) {
    const at = (x, y) => `${this.across(x).toFixed(1)},${this.up(y).toFixed(1)}`;
    if (this.chart.kind !== "stairs") return curve.x.map((x, i) => (Number.isNaN(values[i]) ? null : at(x, values[i]))).filter(Boolean);
    return values.flatMap((y, i) => [at(curve.x[i], y), at(curve.x[i + 1], y)]);
  }
  line(curve, colour, width, dash) {
    const style = { fill: "none", stroke: colour, "stroke-width": width, "stroke-linejoin": "round" };
    return shape("polyline", { points: this.points(curve, curve.y).join(" "), ...style, ...(dash ? { "stroke-dasharray": "5 4" } : {}) });
  }
  shade(curve, pair, colour, opacity) {
    const there = this.points(curve, pair[0]), back = this.points(curve, pair[1]).reverse();
    return shape("polygon", { points: [...there, ...back].join(" "), fill: colour, "fill-opacity": opacity, stroke: "none" });
  }
  rule(x1, y1, x2, y2, colour = SOFT) { return shape("line", { x1, y1, x2, y2, stroke: colour, "stroke-width": 0.8 }); }
  key(one, y) {
    const style = { "stroke-width": 2.5, "stroke-dasharray": one.dash ? "4 2" : "none" };
    return fill(this.rule(one.x, y + 7.5, one.x + 15, y + 7.5, one.colour), style, []);
  }
  // The frame with its ticks: on the left `left`, below `below` (lists of value and word).
  frame(left, below, size) {
    const [x0, y0, x1, y1] = this.box, out = [this.rule(x0, y0, x0, y1), this.rule(x0, y1, x1, y1)];
    if (this.ys[0] < 0 && this.ys[1] > 0) out.push(this.rule(x0, this.up(0), x1, this.up(0), LINE));
    for (const [value, text] of left) {
      out.push(this.rule(x0 - 3, this.up(value), x0, this.up(value)));
      out.push(words(text, x0 - 5, this.up(value) + 3.5, { "text-anchor": "end", "font-size": size }));
    }
    for (const [value, text] of below) {
      out.push(this.rule(this.across(value), y1, this.across(value), y1 + 3));
      out.push(words(text, this.across(value), y1 + size + 4, { "text-anchor": "middle", "font-size": size }));
    }
    this.svg.append(...out);
  }
  mark(curve, i, colour, active) {
    const x = this.chart.kind === "stairs" ? (curve.x[i] + curve.x[i + 1]) / 2 : curve.x[i];
    const out = [this.rule(this.across(x), this.box[1], this.across(x), this.box[3], "#888888")];
    if (active) {
      if (curve.band && curve.role === "level" && !this.chart.panels) out.push(this.shade(curve, curve.band, colour, 0.15));
      out.push(this.line(curve, colour, 2.4, curve.role === "mean"));
    }
    if (!Number.isNaN(curve.y[i])) out.push(shape("circle", { cx: this.across(x), cy: this.up(curve.y[i]), r: 3.5, fill: colour }));
    this.marks.append(...out);
  }
}

// --- charts ----------------------------------------------------------------------------------------------------------

const off = new Set(); // levels that are switched off, on the whole page
const charts = [];

class Chart {
  constructor(figure, chart, set) {
    [this.figure, this.chart, this.set, this.axes] = [figure, chart, set, []];
    this.image = figure.querySelector("img");
    this.card = make("div", { class: chart.panels ? "panels" : "plot", role: "img", "aria-label": this.image.alt });
    this.active = null;
    this.at = Math.floor(this.count / 2);
    const label = `${chart.x}: ${figure.querySelector("figcaption").textContent}`;
    this.slider = make("input", { type: "range", min: 0, max: this.count - 1, value: this.at, "aria-label": label });
    this.readout = make("p", { class: "readout" }, HINT);
    this.slider.title = "Left and right move along the curve, up and down change the curve";
    this.slider.addEventListener("input", () => { this.at = Number(this.slider.value); this.point(); });
    this.slider.addEventListener("focus", () => this.point());
    this.slider.addEventListener("blur", () => this.leave());
    this.slider.addEventListener("keydown", (event) => this.key(event));
    this.draw();
    this.image.hidden = true; // only now: where anything above fails, the static picture stays
    this.image.after(this.card);
    figure.querySelector(".card").after(this.slider, this.readout);
    figure.classList.add("live");
    if (chart.panels) figure.classList.add("wide");
    downloads(figure, () => this.text(), () => this.rows());
  }
  get count() { return this.chart.kind === "stairs" ? this.set.x.length - 1 : this.set.x.length; }
  get curves() { return this.set.curves.filter((one) => one.level === undefined || !off.has(one.level)); }
  get readable() { return this.chart.panels ? this.axes.flatMap((one) => one.own) : this.axes[0].own; }

  draw() {
    const { chart, set } = this, curves = this.curves;
    const x = finite(set.curves.flatMap((one) => one.x));
    const spread = [Math.min(...x), Math.max(...x)];
    this.xs = spread[0] < spread[1] ? spread : [spread[0] - 0.5, spread[0] + 0.5];
    const shaded = (one) => !chart.panels && one.role === "main";
    const y = finite(curves.flatMap((one) => [...one.y, ...(shaded(one) ? [one.band, one.outer].flat(2) : [])]).filter((v) => v !== undefined));
    if (!y.length) y.push(0, 1);
    if (chart.kind === "stairs") y.push(0);
    const [low, high] = [Math.min(...y), Math.max(...y)], room = (high - low || Math.abs(high) || 1) * (chart.panels ? 0.15 : 0.05);
    this.ys = [chart.kind === "stairs" ? low : low - room, high + room];
    this.axes = chart.panels ? this.small(curves) : [this.large(curves)];
    this.axes.forEach((one) => this.listen(one));
    this.card.replaceChildren(...this.axes.map((one) => one.svg));
    if (!this.readable.includes(this.active)) this.active = this.readable[0] ?? null;
    this.say();
  }
  large(curves) {
    const { chart } = this, keys = this.keys(curves), rows = keys.length ? keys.at(-1).row + 1 : 0;
    const size = [350, 262 + 14 * rows], below = chart.x === "angle" ? 48 : 40;
    const axes = new Axes(chart, [52, 10 + 14 * rows, 338, size[1] - below], size, this.xs, this.ys);
    axes.frame(ticks(...this.ys, 6), chart.circular ? ANGLES : ticks(...this.xs, 5), 10);
    const middle = (axes.box[1] + axes.box[3]) / 2, sides = chart.x === "angle" ? SIDES : [];
    sides.forEach((side, i) => axes.svg.append(words(side, axes.across(ANGLES[i][0]), size[1] - 17, { "text-anchor": "middle", "font-size": 9 })));
    axes.svg.append(words(chart.unit ? `${chart.x} (${chart.unit})` : chart.x, 195, size[1] - 5, { "text-anchor": "middle" }));
    axes.svg.append(words(chart.y, 12, middle, { "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }));
    for (const one of keys) axes.svg.append(axes.key(one, 14 * one.row), words(one.name, one.x + 18, 14 * one.row + 11, { "font-size": 10 }));
    const order = { level: 0, mean: 1, main: 2 };
    axes.own = [...curves].sort((a, b) => order[b.role] - order[a.role]);
    for (const one of [...axes.own].reverse()) {
      if (one.role === "main" && one.outer) axes.svg.append(axes.shade(one, one.outer, one.colour, 0.15));
      if (one.role === "main" && one.band) axes.svg.append(axes.shade(one, one.band, one.colour, 0.25));
      const [colour, width] = one.role === "level" ? [GREY, 0.8] : [one.colour, one.role === "mean" ? 1.1 : 1.8];
      axes.svg.append(axes.line(one, colour, width, one.role === "mean"));
    }
    axes.svg.append(axes.marks);
    return axes;
  }
  // The legend: names in rows that are filled from the left.
  keys(curves) {
    const named = curves.filter((one) => one.role !== "level").map((one) => ({ name: one.name, colour: one.colour, dash: one.role === "mean" }));
    if (curves.some((one) => one.role === "level")) named.push({ name: `each ${this.chart.by}`, colour: GREY });
    if (named.length < 2) return [];
    let [x, row] = [52, 0];
    return named.map((one) => {
      const name = one.name.length > 40 ? `${one.name.slice(0, 39)}…` : one.name, wide = 30 + 6 * name.length;
      if (x > 52 && x + wide > 350) [x, row] = [52, row + 1];
      x += wide;
      return { ...one, name, x: x - wide, row };
    });
  }
  small(curves) {
    const others = curves.filter((one) => one.role === "main");
    const levels = [...new Set(curves.filter((one) => one.role === "level").map((one) => one.level))].slice(0, MOST_PANELS);
    const ends = (both) => both.map((value) => [value, minus(String(Number(value.toPrecision(3))))]);
    const below = this.chart.circular ? [ANGLES[0], ANGLES[4]] : ends(this.xs);
    return levels.map((level) => {
      const axes = new Axes(this.chart, [30, 18, 148, 108], [160, 124], this.xs, this.ys);
      axes.frame(ends(this.ys.map((value) => Number(value.toFixed(Math.max(0, this.set.dy - 2))))), below, 8);
      axes.svg.append(words(level.length > 24 ? `${level.slice(0, 23)}…` : level, 89, 12, { "text-anchor": "middle", fill: INK, "font-size": 10 }));
      for (const one of others) axes.svg.append(axes.line(one, GREY, 0.9));
      axes.own = curves.filter((one) => one.level === level);
      for (const one of axes.own) {
        if (one.band) axes.svg.append(axes.shade(one, one.band, one.colour, 0.2));
        axes.svg.append(axes.line(one, one.colour, 1.4));
      }
      axes.svg.append(axes.marks);
      return axes;
    });
  }

  // The pointer asks for the nearest x and, of the curves in these axes, the nearest one.
  listen(axes) {
    const ask = (event) => {
      const box = axes.svg.getBoundingClientRect();
      const x = axes.back(((event.clientX - box.left) / box.width) * axes.size[0]), y = ((event.clientY - box.top) / box.height) * axes.size[1];
      const centres = this.chart.kind === "stairs" ? this.set.x.slice(1).map((end, i) => (end + this.set.x[i]) / 2) : this.set.x;
      this.at = nearest(centres, x);
      const far = axes.own.map((one) => Math.abs(axes.up(one.y[this.index(one)]) - y));
      this.active = axes.own[nearest(far, 0)] ?? this.active;
      this.slider.value = this.at;
      this.point();
    };
    for (const kind of ["pointermove", "pointerdown"]) axes.svg.addEventListener(kind, ask);
    axes.svg.addEventListener("pointerleave", () => this.leave());
  }
  key(event) {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const own = this.readable;
    if (!own.length) return;
    this.active = own[(own.indexOf(this.active) + step + own.length) % own.length];
    this.point();
  }
  index(curve) { return curve.x === this.set.x ? this.at : nearest(curve.x, this.set.x[this.at]); }
  point() {
    for (const axes of this.axes) {
      axes.marks.replaceChildren();
      for (const one of this.chart.panels ? axes.own : [this.active]) {
        if (one) axes.mark(one, this.index(one), this.chart.panels || one.role !== "level" ? one.colour : INK, one === this.active);
      }
    }
    this.readout.textContent = this.say();
  }
  leave() {
    if (document.activeElement === this.slider) return;
    for (const axes of this.axes) axes.marks.replaceChildren();
    this.readout.textContent = HINT;
  }
  // What the pointer or the slider is at, in words.
  say() {
    const { chart, active, set } = this;
    if (!active) return "";
    const i = this.index(active), value = (v) => written(v, set.dy), where = (v) => written(v, set.dx);
    const unit = chart.unit && ` ${chart.unit}`, degrees = chart.circular ? ` (${minus(((active.x[i] * 180) / Math.PI).toFixed(0))}°)` : "";
    const x = chart.kind === "stairs" ? `${where(active.x[i])} to ${where(active.x[i + 1])}${unit}` : `${where(active.x[i])}${unit}${degrees}`;
    const band = (pair, name) => (pair ? `, ${name} ${value(pair[0][i])} to ${value(pair[1][i])}` : "");
    const who = active.role === "level" && chart.by ? `${chart.by} ${active.name}` : active.name;
    const bands = band(active.band, `${chart.coverage} band`) + band(active.outer, "simultaneous");
    const text = `${who} at ${chart.x} ${x}: ${value(active.y[i])}${bands}`;
    this.slider.setAttribute("aria-valuetext", text);
    return text;
  }

  // The figure as it is shown, without the cursor; panels side by side in one picture.
  text() {
    const copies = this.axes.map((one) => one.svg.cloneNode(true));
    copies.forEach((one) => one.querySelector("[data-cursor]").remove());
    const across = Math.max(1, Math.min(5, copies.length)), [w, h] = this.axes[0]?.size ?? [160, 124];
    const size = [w * across, h * Math.max(1, Math.ceil(copies.length / across))];
    const whole = shape("svg", { xmlns: SVG, viewBox: `0 0 ${size[0]} ${size[1]}`, width: size[0], height: size[1] });
    copies.forEach((one, i) => whole.append(fill(one, { x: w * (i % across), y: h * Math.floor(i / across) }, [])));
    return new XMLSerializer().serializeToString(whole);
  }
  rows() {
    const { chart, set } = this, stairs = chart.kind === "stairs", name = chart.unit ? `${chart.x} (${chart.unit})` : chart.x;
    const curves = chart.panels ? this.curves.filter((one) => one.role !== "mean") : this.curves;
    const pairs = [["band", "lower", "upper"], ["outer", "lower_simultaneous", "upper_simultaneous"]];
    const extra = pairs.filter(([key]) => curves.some((one) => one[key])), ends = stairs ? [`${name} from`, `${name} to`] : [name];
    const head = ["curve", ...ends, stairs ? chart.y : "estimate", ...extra.flatMap((one) => one.slice(1))];
    const digits = (value, places) => (Number.isNaN(value) ? "" : Math.abs(places) > 15 ? value : Number(value.toFixed(Math.max(places, 0))));
    const row = (one, i) => [
      one.name, digits(one.x[i], set.dx), ...(stairs ? [digits(one.x[i + 1], set.dx)] : []), digits(one.y[i], set.dy),
      ...extra.flatMap(([key]) => (one[key] ? one[key].map((values) => digits(values[i], set.dy)) : ["", ""])),
    ];
    return [head, ...curves.flatMap((one) => one.y.map((_, i) => row(one, i)))];
  }
}

// --- switches --------------------------------------------------------------------------------------------------------

const bars = []; // of buttons, each with its level: the same levels in every section that draws them

function switched() {
  for (const one of bars.flat()) one.button.setAttribute("aria-pressed", String(!off.has(one.level)));
  for (const one of charts) if (one.set.curves.some((curve) => curve.level !== undefined)) one.draw();
}

function switches(section, levels, by) {
  const toggle = (level) => () => { if (!off.delete(level)) off.add(level); switched(); };
  const own = levels.map((level) => ({ level, button: button(level, toggle(level), { "aria-pressed": "true", tabindex: "-1" }) }));
  const all = button("all", () => { off.clear(); switched(); }), none = button("none", () => { levels.forEach((one) => off.add(one)); switched(); });
  const bar = make("div", { class: "switches", role: "toolbar", "aria-label": `Show each ${by}` });
  const every = [all, none, ...own.map((one) => one.button)];
  every.forEach((one, i) => one.setAttribute("tabindex", i ? "-1" : "0"));
  bar.append(make("span", { "aria-hidden": "true" }, `Show each ${by}:`), ...every);
  bar.addEventListener("keydown", (event) => {
    const at = every.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: every.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    every[(to + every.length) % every.length].focus();
  });
  bar.addEventListener("focusin", (event) => every.forEach((one) => one.setAttribute("tabindex", one === event.target ? "0" : "-1")));
  bars.push(own);
  section.querySelector(".grid").before(bar);
}

// --- the page --------------------------------------------------------------------------------------------------------

for (const table of document.querySelectorAll("table.sortable")) {
  sortable(table);
  tools(table);
}
const page = JSON.parse(document.getElementById("curves").textContent);
const sets = page.sets.map(readSet);
for (const section of document.querySelectorAll("main > section")) {
  for (const figure of section.querySelectorAll("figure")) {
    const chart = page.charts[figure.dataset.chart], map = page.maps[figure.dataset.chart];
    if (chart) charts.push(new Chart(figure, chart, sets[chart.set]));
    else if (map) new CellMap(figure, map);
    else downloads(figure, () => bytes(figure.querySelector("img").src));
  }
  const own = charts.filter((one) => section.contains(one.figure));
  const levels = [...new Set(own.flatMap((one) => one.set.curves.map((curve) => curve.level)).filter((level) => level !== undefined))];
  if (levels.length > 1) switches(section, levels, own.find((one) => one.chart.by)?.chart.by ?? "level");
}
