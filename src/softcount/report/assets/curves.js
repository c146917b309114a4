// All curves, group by group; numbers that no group names are folded away under "Everything else".
const NO_NUMBERS = {
  Evaluation: "No evaluation was reported: the run was shorter than evaluate_every, or that is 0.",
  Memory: "No numbers of a memory were reported: this agent keeps none.",
  Exploration: "Neither places nor bonuses were reported.",
};

function curvesSection() {
  const reported = new Set(RUNS.flatMap((run) => Object.keys(run.curves.series)));
  if (!reported.size)
    return [empty("There are no reports to draw. Curves appear after the first report_every steps.")];
  const named = new Set(
    Object.values(DATA.groups)
      .flat()
      .map(([metric]) => metric),
  );
  const groups = Object.entries(DATA.groups).map(([group, metrics]) => {
    const charts = metrics
      .filter(([metric]) => reported.has(metric))
      .map(([metric, title, kind]) => new LineChart(metric, title, kind).node);
    return el(
      "div",
      { "data-group": group },
      el("h3", {}, group),
      charts.length
        ? el("div", { class: "grid" }, charts)
        : empty(NO_NUMBERS[group] || "No such numbers were reported."),
    );
  });
  const rest = [...reported].filter((metric) => !named.has(metric)).sort();
  const grid = el("div", { class: "grid" });
  const folded = el(
    "details",
    {
      id: "rest",
      ontoggle: () => {
        if (folded.open && !grid.childElementCount)
          grid.append(
            ...rest.map(
              (metric) =>
                new LineChart(metric, metric.split("/").slice(1).join("/") || metric, "number").node,
            ),
          );
      },
    },
    el("summary", {}, `Everything else (${rest.length})`),
    grid,
  );
  return [curveControls(), ...groups, rest.length ? folded : null];
}

function curveControls() {
  const value = el("span", {}, String(VIEW.smoothing));
  const slider = el("input", {
    type: "range",
    min: 0,
    max: 0.95,
    step: 0.05,
    value: VIEW.smoothing,
    "aria-label": "Smoothing",
    oninput: () => {
      VIEW.smoothing = Number(slider.value);
      value.textContent = slider.value;
      redrawCharts();
    },
  });
  const horizontal = choice("Horizontal axis", { steps: "Steps", hours: "Hours" }, VIEW.x, (x) => {
    VIEW.x = x;
    redrawCharts();
  });
  return el(
    "div",
    { class: "controls" },
    el("label", {}, "Along ", horizontal),
    el("label", {}, "Smoothing ", slider, value),
  );
}

function legend() {
  return el(
    "div",
    { class: "legend", role: "group", "aria-label": "Runs" },
    RUNS.map((run, index) => {
      const button = el(
        "button",
        {
          type: "button",
          "aria-pressed": "true",
          onclick: () => {
            const isShown = VIEW.hidden.delete(index) || (VIEW.hidden.add(index), false);
            button.setAttribute("aria-pressed", String(isShown));
            redrawCharts();
          },
        },
        swatch(index),
        run.name,
      );
      return button;
    }),
  );
}
