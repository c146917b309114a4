// The map of each task's world: cells coloured by when they were first seen, or by how often they were visited.
const WORLD_VIEW = { by: "first_seen", path: false };
function worldSection() {
  const panels = RUNS.flatMap((run, index) => run.worlds.map((world) => ({ run, index, world })));
  const mapped = panels.filter(({ world }) => world.shape);
  const state = WORLD_VIEW;
  const grid = runGrid(panels.length);
  const refresh = () =>
    grid.replaceChildren(...panels.map((panel) => worldCard(panel, state, mapped)));
  refresh();
  if (!mapped.length) return [grid];
  const path = el("input", {
    type: "checkbox",
    checked: state.path,
    onchange: () => {
      state.path = path.checked;
      refresh();
    },
  });
  const hasPath = mapped.some(({ run }) => run.clip && run.clip.cells && run.clip.cells.some(Boolean));
  return [
    el(
      "div",
      { class: "controls", style: "margin-bottom:12px" },
      el(
        "label",
        {},
        "Colour ",
        choice("Colour of cells", { first_seen: "First seen", visits: "Visits" }, state.by, (by) => {
          state.by = by;
          refresh();
        }),
      ),
      hasPath ? el("label", {}, path, "Path of the episode shown") : null,
    ),
    grid,
  ];
}

function worldCard({ run, index, world }, state, mapped) {
  const card = el("div", { class: "card map", "data-run": index }, runTitle(run, index), taskTitle(world));
  if (world.visited !== undefined) {
    const of = world.places ? ` of ${whole(world.places)}` : "";
    card.append(
      el(
        "p",
        { class: "soft" },
        el("b", { style: "color:var(--text)" }, `${whole(world.visited)}${of} places`),
        ` at step ${whole(world.steps)}`,
      ),
    );
  }
  if (!world.shape) {
    card.append(empty(world.missing));
    return card;
  }
  const isAlike = (other) => worldName(other.run) === worldName(run) && other.world.task === world.task;
  const alike = mapped.filter(isAlike); // these share one scale
  const top = alike.reduce((most, other) => Math.max(most, ...other.world[state.by]), 1);
  const share = (value) =>
    state.by === "visits" ? Math.log(value) / Math.max(Math.log(top), 1e-9) : value / top;
  const cell = (kind, [row, column], extra) =>
    draw("rect", { class: kind, x: column + 0.03, y: row + 0.03, width: 0.94, height: 0.94, ...extra });
  const [rows, columns] = world.shape;
  const map = draw(
    "svg",
    {
      viewBox: `0 0 ${columns} ${rows}`,
      class: world.floor ? "" : "unbounded",
      role: "img",
      "aria-label": `Map of ${world.task || run.name}: ${world.visited} places visited`,
      style: `aspect-ratio:${columns}/${rows};max-width:${Math.round(460 * Math.max(1, columns / rows))}px`,
      onpointermove: (event) => tellCell(event, world),
      onpointerdown: (event) => tellCell(event, world),
      onpointerleave: hideTip,
    },
    (world.floor || []).map((at) => cell("floor", at)),
    world.cells.map((at, i) => cell("seen", at, { fill: ramp(share(world[state.by][i])), "data-cell": i })),
    world.goal ? star(world.goal) : null,
    state.path && run.clip && world.task === (run.clip.task || null) ? pathOnMap(run.clip.cells || []) : null,
  );
  const key =
    state.by === "visits"
      ? rampBar("1 visit", `${whole(top)} visits`)
      : rampBar("step 0", `step ${whole(top)}`);
  if (world.floor)
    key.append(
      el(
        "span",
        {},
        el("i", { class: "swatch", style: "color:var(--floor);min-width:12px;vertical-align:-1px" }),
        " never seen",
      ),
    );
  if (world.goal) key.append(el("span", {}, "★ goal"));
  lightNewCells(map, world, `${run.name} ${world.task}`);
  card.append(map, key);
  return card;
}

// Cells that were not there when the page was drawn last light up.
const DRAWN_CELLS = new Map();
function lightNewCells(map, world, key) {
  const before = DRAWN_CELLS.get(key);
  const names = world.cells.map(String);
  if (before)
    map.querySelectorAll(".seen").forEach((cell) => {
      if (!before.has(names[cell.dataset.cell]))
        cell.animate([{ fill: "#fff" }, {}], { duration: 1500, easing: "ease-in" });
    });
  DRAWN_CELLS.set(key, new Set(names));
}

function tellCell(event, world) {
  const i = event.target.dataset.cell;
  if (i === undefined) return hideTip();
  const [row, column] = world.cells[i];
  showTip(event, `row ${row}, column ${column}`, [
    [null, "first seen at step", whole(world.first_seen[i])],
    [null, "visits", whole(world.visits[i])],
  ]);
}

function star([row, column]) {
  const points = [...Array(10).keys()].map((i) => {
    const radius = i % 2 ? 0.19 : 0.45,
      angle = Math.PI * (i / 5 - 0.5);
    return `${column + 0.5 + radius * Math.cos(angle)},${row + 0.52 + radius * Math.sin(angle)}`;
  });
  return draw("polygon", { class: "goal", points: points.join(" ") });
}

function pathOnMap(cells) {
  const points = cells
    .filter(Boolean)
    .map(([row, column]) => `${column + 0.5},${row + 0.5}`)
    .join(" ");
  return draw(
    "g",
    {},
    draw("polyline", { class: "path under", points }),
    draw("polyline", { class: "path", points }),
  );
}
