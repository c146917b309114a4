// The memory, or that of each task: atoms on their two main axes, area by count; histograms of counts and ages.
const MEMORY_VIEW = { by: "ages" };
function memorySection() {
  const state = MEMORY_VIEW;
  const panels = RUNS.flatMap((run, index) => run.memories.map((memory) => ({ run, index, memory })));
  const grid = runGrid(panels.length);
  const refresh = () => grid.replaceChildren(...panels.map((panel) => memoryCard(panel, state)));
  refresh();
  if (panels.every(({ memory }) => memory.missing)) return [grid];
  const colours = choice("Colour of atoms", { ages: "Age", log10_counts: "Count" }, state.by, (by) => {
    state.by = by;
    refresh();
  });
  return [
    el("div", { class: "controls", style: "margin-bottom:12px" }, el("label", {}, "Colour ", colours)),
    grid,
  ];
}

function memoryCard({ run, index, memory }, state) {
  const card = el(
    "div",
    { class: "card memory", "data-run": index, style: `--ink:${colour(index)}` },
    runTitle(run, index),
    taskTitle(memory),
    memory.missing ? null : el("p", { class: "soft" }, `at step ${whole(run.checkpoint)}`),
  );
  if (memory.missing) {
    card.append(empty(memory.missing));
    return card;
  }
  const numbers = memory.summary;
  const facts = {
    [`atoms of ${whole(memory.size)}`]: whole(numbers.num_atoms),
    "effective atoms": plain(numbers.effective_atoms),
    "sum of counts": plain(numbers.total_count),
    "bandwidth d_ema": plain(Math.sqrt(numbers.d2_ema)),
    "median age": whole(numbers.age_p50),
    "embeddings seen": whole(numbers.num_observed),
  };
  card.append(
    el(
      "div",
      { class: "body" },
      scatter(memory, state.by, `${run.name} ${memory.task}`),
      el(
        "div",
        {},
        el(
          "div",
          { class: "facts" },
          Object.entries(facts).map(([name, value]) =>
            el("div", {}, el("b", {}, value), el("span", {}, name)),
          ),
        ),
        histogram("Ages of atoms, in embeddings", memory.age_bins, brief),
        histogram("Counts of atoms", memory.count_bins, (x) => brief(10 ** x)),
      ),
    ),
  );
  return card;
}

// Where each atom was drawn last, by memory and by birth: a page that is drawn again moves them.
const DRAWN_ATOMS = new Map();
const MOVE = { duration: 900, easing: "ease-in-out" };
function moveAtoms(circles, births, key) {
  const before = DRAWN_ATOMS.get(key);
  const now = new Map();
  circles.forEach(([i, circle]) => {
    const [x, y] = ["cx", "cy"].map((name) => Number(circle.getAttribute(name)));
    now.set(births[i], [x, y]);
    if (!before) return;
    const [oldX, oldY] = before.get(births[i]) || [];
    if (oldX === undefined) circle.animate([{ opacity: 0 }, { opacity: 1 }], MOVE);
    else if (oldX !== x || oldY !== y)
      circle.animate([{ transform: `translate(${oldX - x}px, ${oldY - y}px)` }, { transform: "none" }], MOVE);
  });
  DRAWN_ATOMS.set(key, now);
}

function scatter(memory, by, key) {
  const side = 400,
    pad = 14,
    values = memory[by];
  const ends = (list) => [Math.min(...list), Math.max(...list)];
  const [left, right] = ends(memory.x),
    [bottom, top] = ends(memory.y),
    [least, most] = ends(values);
  const scale = (side - 2 * pad) / Math.max(right - left, top - bottom, 1e-12); // the same along both axes
  const height = Math.max(160, (top - bottom) * scale + 2 * pad);
  const most10 = Math.max(...memory.log10_counts);
  const order = [...values.keys()].sort((a, b) => memory.log10_counts[b] - memory.log10_counts[a]); // small ones on top
  const circles = order.map((i) =>
    draw("circle", {
      "data-atom": i,
      cx: (side / 2 + (memory.x[i] - (left + right) / 2) * scale).toFixed(1),
      cy: (height / 2 - (memory.y[i] - (bottom + top) / 2) * scale).toFixed(1),
      r: (1.5 + 6 * 10 ** ((memory.log10_counts[i] - most10) / 2)).toFixed(2),
      fill: ramp((values[i] - least) / (most - least || 1)),
    }),
  );
  moveAtoms(
    circles.map((circle, at) => [order[at], circle]),
    memory.births,
    key,
  );
  const tell = (event) => {
    const i = event.target.dataset.atom;
    if (i === undefined) return hideTip();
    showTip(event, "atom", [
      [null, "count", plain(10 ** memory.log10_counts[i])],
      [null, "age", `${whole(memory.ages[i])} embeddings`],
    ]);
  };
  const map = draw(
    "svg",
    {
      class: "scatter",
      viewBox: `0 0 ${side} ${height.toFixed(0)}`,
      role: "img",
      "data-points": circles.length,
      "aria-label": `${circles.length} atoms on their two main axes`,
      onpointermove: tell,
      onpointerdown: tell,
      onpointerleave: hideTip,
    },
    circles,
  );
  const few =
    memory.x.length < memory.summary.num_atoms
      ? `${whole(memory.x.length)} of ${whole(memory.summary.num_atoms)} atoms, chosen evenly over their ages. `
      : "";
  const note = `${few}The two axes hold ${show(memory.variance_shown, "share")} of the atoms' variance; area grows with the count.`;
  const bar =
    by === "ages"
      ? rampBar("youngest", `${whole(most)} embeddings old`)
      : rampBar(`count ${plain(10 ** least)}`, plain(10 ** most));
  return el("div", {}, map, bar, el("p", { class: "soft", style: "font-size:0.8rem;margin:6px 0 0" }, note));
}

const brief = (value) => compact(Number(value.toPrecision(3)));

function histogram(title, bins, label) {
  const width = 400,
    floor = 90,
    most = Math.max(...bins.numbers, 1),
    step = width / bins.numbers.length;
  const bars = bins.numbers.map((number, i) =>
    draw("rect", {
      "data-bin": i,
      x: i * step + 0.5,
      width: step - 1,
      y: floor - (number / most) * (floor - 6),
      height: (number / most) * (floor - 6),
    }),
  );
  const tell = (event) => {
    const i = Number(event.target.dataset.bin);
    if (Number.isNaN(i)) return hideTip();
    showTip(event, `${label(bins.edges[i])} to ${label(bins.edges[i + 1])}`, [
      [null, "atoms", whole(bins.numbers[i])],
    ]);
  };
  const ends = [0, Math.floor(bins.edges.length / 2), -1].map((i) => el("span", {}, label(bins.edges.at(i))));
  return el(
    "div",
    { class: "histogram" },
    el("h4", {}, title),
    draw(
      "svg",
      {
        class: "bars",
        viewBox: `0 0 ${width} ${floor + 1}`,
        role: "img",
        "aria-label": title,
        onpointermove: tell,
        onpointerdown: tell,
        onpointerleave: hideTip,
      },
      bars,
      draw("line", { class: "axis", x1: 0, x2: width, y1: floor, y2: floor }),
    ),
    el("div", { class: "ends" }, ends),
  );
}
