// Elements, numbers, scales and colours that every drawing uses. Values only ever become text.
const DATA = JSON.parse(document.getElementById("data").textContent);
const RUNS = DATA.runs;
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const empty = (text) => el("p", { class: "empty" }, text);

// Numbers: `whole` for tables, `compact` for axes, `show` by the kind of a metric.
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const whole = (value) => Math.round(value).toLocaleString("en-US");
function plain(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e15 || size < 1e-4) return value.toExponential(2);
  return size >= 1000 ? whole(value) : String(Number(value.toPrecision(4)));
}
function compact(value) {
  const size = Math.abs(value);
  for (const [unit, letter] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ])
    if (size >= unit) return `${Number((value / unit).toPrecision(5))}${letter}`;
  return size !== 0 && size < 1e-3 ? value.toExponential(0) : String(Number(value.toPrecision(5)));
}
function show(value, kind) {
  if (!isNumber(value)) return "–";
  if (kind === "share") return `${Number((100 * value).toPrecision(3))} %`;
  return kind === "count" ? whole(value) : plain(value);
}
function clock(hours) {
  if (!isNumber(hours)) return "–";
  const seconds = Math.round(hours * 3600),
    minutes = Math.floor(seconds / 60);
  if (minutes < 1) return `${seconds} s`;
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// Scales: round numbers between two ends.
function ticks(low, high, about) {
  const rough = (high - low) / Math.max(1, about),
    power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++)
    found.push(Number((i * step).toPrecision(12)));
  return found;
}

// Colours: one per run, and viridis for amounts, without its two faintest ends.
const colour = (index) => `var(--run-${index % 8})`;
const swatch = (index) => el("i", { class: "swatch", style: `color:${colour(index)}` });
const runGrid = (num = RUNS.length) => el("div", { class: `grid ${num > 2 ? "many" : "wide"}` });
const dashes = (index) => [null, "6 4", "2 3"][Math.floor(index / 8) % 3];
const VIRIDIS = [
  "#482374",
  "#404387",
  "#345e8d",
  "#29788e",
  "#20908c",
  "#22a784",
  "#44be70",
  "#79d151",
  "#bddf26",
  "#f0e51c",
];
function ramp(share) {
  const at = Math.min(1, Math.max(0, share)) * (VIRIDIS.length - 1),
    low = Math.min(VIRIDIS.length - 2, Math.floor(at));
  const mix = (i) => [0, 1].map((k) => parseInt(VIRIDIS[low + k].slice(1 + 2 * i, 3 + 2 * i), 16));
  const parts = [0, 1, 2].map((i) => Math.round(mix(i)[0] + (at - low) * (mix(i)[1] - mix(i)[0])));
  return `rgb(${parts.join(" ")})`;
}
const rampBar = (left, right) =>
  el(
    "div",
    { class: "ramp" },
    el("span", {}, left),
    el("i", { style: `background:linear-gradient(90deg,${VIRIDIS.join(",")})` }),
    el("span", {}, right),
  );

// The one floating box: lines are [colour, name, value].
const TIP = document.getElementById("tip");
function showTip(event, title, lines) {
  TIP.replaceChildren(
    el("strong", {}, title),
    ...lines.map(([ink, name, value]) =>
      el(
        "div",
        {},
        ink ? el("i", { class: "swatch", style: `color:${ink}` }) : null,
        el("span", {}, name),
        el("b", {}, value),
      ),
    ),
  );
  TIP.hidden = false;
  const box = TIP.getBoundingClientRect(),
    room = document.documentElement.clientWidth;
  TIP.style.left = `${Math.max(6, event.clientX + 18 + box.width > room ? event.clientX - box.width - 18 : event.clientX + 18)}px`;
  TIP.style.top = `${Math.max(6, Math.min(event.clientY + 14, window.innerHeight - box.height - 8))}px`;
}
const hideTip = () => {
  TIP.hidden = true;
};

// Buttons of which exactly one is pressed.
function choice(label, options, chosen, onchange) {
  const buttons = Object.entries(options).map(([value, text]) =>
    el(
      "button",
      {
        type: "button",
        "data-value": value,
        "aria-pressed": String(value === chosen),
        onclick: () => {
          buttons.forEach((button) =>
            button.setAttribute("aria-pressed", String(button.dataset.value === value)),
          );
          onchange(value);
        },
      },
      text,
    ),
  );
  return el("span", { class: "choice", role: "group", "aria-label": label }, buttons);
}
function worldName(run) {
  const options = Object.entries(run.config).filter(([name]) => name.startsWith("env_options."));
  return [run.config.env, ...options.map(([name, value]) => `${name.slice(12)} ${value}`)].join(", ");
}
const taskTitle = ({ task }) => (task ? el("h4", { class: "task" }, task) : null);
const runTitle = (run, index) =>
  RUNS.length > 1 ? el("div", { class: "head" }, el("h4", {}, swatch(index), run.name)) : null;
