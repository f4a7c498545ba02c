"use strict";
// Maps that readers can ask. The picture stays; a cursor over its axes and a slider say the values of cells.
// What report.js has in common (make, shape, decoded, written, downloads, …) is called only once that has run.

class CellMap {
  constructor(figure, map) {
    [this.figure, this.map] = [figure, map];
    [this.x, this.y, this.z] = ["x", "y", "z"].map((name, i) => decoded(map[name], map.places[i]));
    const top = this.z.reduce((best, value, i) => (Number.isNaN(value) || value <= this.z[best] ? best : i), this.z.findIndex(Number.isFinite));
    [this.i, this.j] = [Math.floor(Math.max(top, 0) / this.x.length), Math.max(top, 0) % this.x.length]; // at the highest cell
    const image = figure.querySelector("img"), label = `Map of ${map.value} over ${map.names.join(" and ")}: ${figure.querySelector("figcaption").textContent}`;
    this.cursor = shape("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" });
    this.slider = make("input", { type: "range", min: 0, max: this.x.length - 1, value: this.j, "aria-label": label });
    this.slider.title = "Left and right move across the map, up and down move up and down on it";
    this.readout = make("p", { class: "readout" }, MAP_HINT);
    this.slider.addEventListener("input", () => { this.j = Number(this.slider.value); this.point(); });
    this.slider.addEventListener("focus", () => this.point());
    this.slider.addEventListener("blur", () => this.leave());
    this.slider.addEventListener("keydown", (event) => this.key(event));
    const holder = make("div", { class: "map" });
    image.replaceWith(holder);
    holder.append(image, this.cursor);
    for (const kind of ["pointermove", "pointerdown"]) holder.addEventListener(kind, (event) => this.ask(event, holder));
    holder.addEventListener("pointerleave", () => this.leave());
    figure.querySelector(".card").after(this.slider, this.readout);
    figure.classList.add("live");
    downloads(figure, () => bytes(image.src), () => this.rows(), "Numbers of the map, rounded to what the picture shows.");
    this.say();
  }
  // Per cent of the picture from its left and its top.
  across(value) { const [x0, , x1] = this.map.limits, [left, , right] = this.map.box; return 100 * (left + ((value - x0) / (x1 - x0)) * (right - left)); }
  down(value) { const [, y0, , y1] = this.map.limits, [, top, , bottom] = this.map.box; return 100 * (top + ((value - y0) / (y1 - y0)) * (bottom - top)); }
  ask(event, holder) {
    const box = holder.getBoundingClientRect();
    const at = [(100 * (event.clientX - box.left)) / box.width, (100 * (event.clientY - box.top)) / box.height];
    const [left, top, right, bottom] = this.map.box.map((share) => 100 * share);
    if (at[0] < left || at[0] > right || at[1] < top || at[1] > bottom) return this.leave(); // the colour bar, the labels
    this.j = nearest(this.x.map((value) => this.across(value)), at[0]);
    this.i = nearest(this.y.map((value) => this.down(value)), at[1]);
    this.slider.value = this.j;
    this.point();
  }
  key(event) {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key]; // as seen: y may grow downwards
    if (!step) return;
    event.preventDefault();
    const way = this.down(this.y.at(-1)) > this.down(this.y[0]) ? step : -step;
    this.i = Math.min(this.y.length - 1, Math.max(0, this.i + way));
    this.point();
  }
  point() {
    const [left, top, right, bottom] = this.map.box.map((share) => 100 * share);
    const x = this.across(this.x[this.j]), y = this.down(this.y[this.i]);
    const rule = (x1, y1, x2, y2) => [["#ffffff", 3], ["#222222", 1]].map(([stroke, width]) =>
      shape("line", { x1, y1, x2, y2, stroke, "stroke-width": width, "stroke-opacity": 0.7, "vector-effect": "non-scaling-stroke" }));
    this.cursor.replaceChildren(...rule(x, top, x, bottom), ...rule(left, y, right, y));
    this.readout.textContent = this.say();
  }
  leave() {
    if (document.activeElement === this.slider) return;
    this.cursor.replaceChildren();
    this.readout.textContent = MAP_HINT;
  }
  // The cell that the pointer or the slider is at, in words.
  say() {
    const { map } = this, value = this.z[this.i * this.x.length + this.j];
    const where = [this.x[this.j], this.y[this.i]].map((v, k) => `${map.names[k]} ${written(v, Math.min(map.places[k], 3))}${map.units[k] && ` ${map.units[k]}`}`);
    const text = `At ${where.join(", ")}: ${Number.isNaN(value) ? "no value" : `${map.value} ${written(value, map.places[2])}`}`;
    this.slider.setAttribute("aria-valuetext", text);
    return text;
  }
  rows() {
    const { map } = this, head = map.names.map((name, k) => (map.units[k] ? `${name} (${map.units[k]})` : name));
    const digits = (value, places) => (Math.abs(places) > 15 ? value : Number(value.toFixed(Math.max(places, 0))));
    const row = (value, at) => [
      digits(this.x[at % this.x.length], map.places[0]), digits(this.y[Math.floor(at / this.x.length)], map.places[1]), digits(value, map.places[2]),
    ];
    return [[...head, map.value], ...this.z.flatMap((value, at) => (Number.isNaN(value) ? [] : [row(value, at)]))];
  }
}
