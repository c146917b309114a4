// Summary, shares of time and configuration.
const SUMMARY = [
  ["step", "Steps", "count"],
  ["hours", "Time", "clock"],
  ...DATA.final,
  ["speed", "Steps per second, median", "count"],
];
const showFinal = (value, kind) => (kind === "clock" ? clock(value) : show(value, kind));

// The step at which a number was taken; those of a whole run have none.
const takenAt = (run, name) =>
  isNumber(run.final_at[name])
    ? el("small", { class: "taken", "data-at": run.final_at[name] }, `at step ${whole(run.final_at[name])}`)
    : null;

function summarySection() {
  const known = SUMMARY.filter(([name]) => RUNS.some((run) => isNumber(run.final[name])));
  if (!known.length) return [empty("No report was written, so there are no numbers yet.")];
  if (RUNS.length === 1)
    return [
      el(
        "div",
        { class: "tiles" },
        known.map(([name, title, kind]) =>
          el(
            "div",
            { class: "tile", "data-final": name },
            el("b", {}, showFinal(RUNS[0].final[name], kind)),
            el("span", {}, title),
            takenAt(RUNS[0], name),
          ),
        ),
      ),
    ];
  return [
    el(
      "div",
      { class: "card scroll" },
      el(
        "table",
        { id: "final" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("th", {}, "Run"),
            known.map(([, title]) => el("th", { class: "number" }, title)),
          ),
        ),
        el(
          "tbody",
          {},
          RUNS.map((run, index) =>
            el(
              "tr",
              {},
              el("td", { class: "name" }, swatch(index), run.name),
              known.map(([name, , kind]) =>
                el(
                  "td",
                  { class: "number", "data-final": name },
                  showFinal(run.final[name], kind),
                  takenAt(run, name),
                ),
              ),
            ),
          ),
        ),
      ),
    ),
  ];
}

function timeSection() {
  const roles = Object.entries(DATA.roles);
  const ink = (role, i) => (role === "learner_wait" ? "var(--floor)" : ramp(i / (roles.length - 2))); // not the colours of runs
  if (RUNS.every((run) => !Object.keys(run.time).length))
    return [empty("No report says how long each role took.")];
  const bar = (run, index) =>
    el(
      "div",
      {},
      RUNS.length > 1 ? el("h4", {}, run.name) : null,
      el(
        "div",
        { class: "stack", "data-run": index },
        roles.map(([role, title], i) =>
          el("i", {
            style: `flex:${run.time[role] || 0} 0 0;background:${ink(role, i)}`,
            "data-role": role,
            onpointermove: (event) =>
              showTip(event, title, [[ink(role, i), "share of time", show(run.time[role], "share")]]),
            onpointerleave: hideTip,
          }),
        ),
      ),
    );
  return [
    el(
      "div",
      { class: `card ${RUNS.length < 5 ? "narrow" : ""}` },
      RUNS.map(bar),
      el(
        "div",
        { class: "scroll" },
        el(
          "table",
          {},
          RUNS.length > 1
            ? el(
                "thead",
                {},
                el(
                  "tr",
                  {},
                  el("th", {}, "Role"),
                  RUNS.map((run) => el("th", { class: "number" }, run.name)),
                ),
              )
            : null,
          el(
            "tbody",
            {},
            [...roles, ["learner", "Learner at work, meanwhile"]].map(([role, title], i) =>
              el(
                "tr",
                {},
                el(
                  "td",
                  { class: "name" },
                  role in DATA.roles ? el("i", { class: "swatch", style: `color:${ink(role, i)}` }) : null,
                  title,
                ),
                RUNS.map((run) =>
                  el("td", { class: "number", "data-role": role }, show(run.time[role], "share")),
                ),
              ),
            ),
          ),
        ),
      ),
    ),
  ];
}

// Fields that differ come first; the rest is folded by its first word. Searching opens what it finds.
function configSection() {
  const names = [...new Set(RUNS.flatMap((run) => Object.keys(run.config)))];
  // A field that a run does not have is one that its agent does not read: no difference, the agent's name tells.
  const differs = (name) => new Set(RUNS.map((run) => run.config[name]).filter((x) => x !== undefined)).size > 1;
  const differing = names.filter(differs),
    same = names.filter((name) => !differs(name));
  const groups = new Map();
  for (const name of same) {
    const group = name.includes(".") ? name.split(".")[0] : "run";
    groups.set(group, [...(groups.get(group) || []), name]);
  }
  const parts = [...groups].map(([group, fields]) =>
    el(
      "details",
      { open: group === "run" && RUNS.length === 1 },
      el(
        "summary",
        {},
        group,
        el("span", { class: "soft", style: "font-weight:400" }, ` · ${fields.length}`),
      ),
      fieldTable(fields, RUNS.slice(0, 1)),
    ),
  );
  const nothing = el("p", { class: "empty", hidden: true }, "No field has this name or value.");
  const search = el("input", {
    type: "search",
    placeholder: "Search fields and values",
    "aria-label": "Search the configuration",
    oninput: () => find(search.value),
  });
  const first =
    RUNS.length === 1
      ? null
      : el(
          "div",
          { class: "card", id: "differing" },
          el(
            "h4",
            {},
            differing.length ? "What differs" : "Nothing differs: these runs have the same configuration.",
          ),
          differing.length ? fieldTable(differing, RUNS) : null,
        );

  function find(text) {
    const wanted = text.trim().toLowerCase();
    let found = 0;
    for (const row of document.querySelectorAll("#configuration tr[data-field]")) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
      found += row.hidden ? 0 : 1;
    }
    for (const part of parts) {
      part.hidden = [...part.querySelectorAll("tr[data-field]")].every((row) => row.hidden);
      part.open = wanted
        ? !part.hidden
        : part.querySelector("summary").textContent.startsWith("run") && RUNS.length === 1;
    }
    nothing.hidden = found > 0;
  }
  return [
    el("div", { class: "controls", style: "margin-bottom:12px" }, search),
    first,
    RUNS.length > 1 && same.length ? el("h3", {}, "The same in all runs") : null,
    el("div", { class: "folds" }, parts),
    nothing,
  ];
}

function fieldTable(fields, runs) {
  return el(
    "div",
    { class: "scroll" },
    el(
      "table",
      { class: runs.length > 1 ? "fields" : "fields one" },
      runs.length > 1
        ? el(
            "thead",
            {},
            el(
              "tr",
              {},
              el("th", {}, "Field"),
              runs.map((run, index) => el("th", {}, swatch(index), run.name)),
            ),
          )
        : null,
      el(
        "tbody",
        {},
        fields.map((name) =>
          el(
            "tr",
            { "data-field": name },
            el("td", {}, name),
            runs.map((run) => el("td", {}, run.config[name] ?? "–")),
          ),
        ),
      ),
    ),
  );
}
