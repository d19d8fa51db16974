// What the pages of the console do beyond links and forms: parts that are live are asked for again,
// charts are drawn from their tables, a box chooses all rows. Pages work without it.
"use strict";

// With what an answer takes, a number is on the page within 2 s.
const EVERY_MS = 1700;
const ticks = new WeakMap();
const began = Date.now();

function tick() {
  // A tab that nobody sees asks nothing.
  if (document.hidden) return;
  for (const part of document.querySelectorAll("[data-live]")) {
    const every = Number(part.dataset.live || 0) * 1000;
    const last = ticks.get(part) ?? (every ? began : 0);  // what is live every 30 s has just been loaded
    if (Date.now() - last < every || part.classList.contains("htmx-request")) continue;
    ticks.set(part, Date.now());
    part.dispatchEvent(new CustomEvent("tick"));
  }
}

function notice(text) {
  const place = document.getElementById("notice");
  if (!place) return;
  place.replaceChildren();
  if (text) {
    const line = document.createElement("p");
    line.className = "problem";
    line.textContent = text;
    place.append(line);
  }
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function draw(place) {
  const table = document.getElementById(place.dataset.chart);
  if (!table || typeof uPlot === "undefined" || !place.clientWidth) return;
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  const rows = [...table.tBodies[0].rows];
  // A dash is a gap.
  const number = (cell) => (cell.textContent === "-" ? null : Number(cell.textContent.replaceAll(",", "")));
  const data = names.map((_, column) =>
    rows.map((row) => (column ? number(row.cells[column]) : Number(row.cells[0].dataset.at))));
  const soft = colour("--soft");
  const axis = { stroke: soft, grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
  const options = {
    width: place.clientWidth,
    height: 220,
    tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
    axes: [axis, { ...axis, size: 60 }],
    series: names.map((label, place) => (place ? { label, stroke: colour(`--s${place}`), width: 2 } : { label: "UTC" })),
  };
  place.replaceChildren();
  new uPlot(options, data, place);
}

function drawAll() {
  for (const place of document.querySelectorAll("[data-chart]")) draw(place);
}

document.addEventListener("htmx:after:request", (event) => {
  const answer = event.detail.ctx.response;
  const status = answer ? answer.status : 0;
  if (status === 200 && !answer.headers.get("hx-retarget")) notice("");
});
document.addEventListener("htmx:before:swap", (event) => {
  const answer = event.detail.ctx.response;
  if (answer && answer.status >= 400) {
    event.preventDefault();
    notice(`The console answered ${answer.status}; this page goes on by itself.`);
  }
});
document.addEventListener("htmx:error", () => notice("The console does not answer; this page goes on by itself when it does."));
// What somebody has opened stays open when the part around it is asked for again.
const opened = new Set();
document.addEventListener("toggle", (event) => {
  if (event.target.id) opened[event.target.open ? "add" : "delete"](event.target.id);
}, true);
document.addEventListener("htmx:after:swap", () => {
  for (const id of opened) {
    const part = document.getElementById(id);
    if (part && !part.open) part.open = true;
  }
  for (const place of document.querySelectorAll("[data-chart]")) if (!place.firstChild) draw(place);
});
document.addEventListener("visibilitychange", tick);
document.addEventListener("change", (event) => {
  const name = event.target.dataset ? event.target.dataset.all : undefined;
  if (!name) return;
  for (const box of document.querySelectorAll(`input[type=checkbox][name="${name}"]`)) box.checked = event.target.checked;
});
let redraw = 0;
window.addEventListener("resize", () => {
  clearTimeout(redraw);
  redraw = setTimeout(drawAll, 150);
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
drawAll();
setInterval(tick, EVERY_MS);
