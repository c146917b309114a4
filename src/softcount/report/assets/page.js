// Puts the page together.
const SECTIONS = [
  [
    "summary",
    "Summary",
    RUNS.length > 1
      ? "The last number of each kind of every run, and the step at which it was taken."
      : "The last number of each kind, and the step at which it was taken.",
    summarySection,
  ],
  ["world", "World", "Where the run has been; of several tasks, in each.", worldSection],
  [
    "clip",
    "What the agent does",
    "The first of some evaluation episodes, played with little noise by what the run had learned at its last checkpoint.",
    clipSection,
  ],
  ["curves", "Curves", "Move over a chart to read all of them at the same place.", curvesSection],
  [
    "memory",
    "Memory",
    "RECODE's atoms, projected on their two main axes.",
    memorySection,
  ],
  [
    "time",
    "Time",
    "How the acting thread spent its time since the process started. The learner works beside it; acting waits when the replay ratio asks for an update that is not ready.",
    timeSection,
  ],
  ["configuration", "Configuration", "", configSection],
].filter(([id]) => id !== "clip" || RUNS.some((run) => run.clip)); // a live page plays no episodes

function header() {
  const worlds = [...new Set(RUNS.map((run) => `${run.config.agent} on ${worldName(run)}`))];
  const title = RUNS.length === 1 ? RUNS[0].name : `${RUNS.length} runs compared`;
  return [
    el(
      "div",
      {},
      el("h1", {}, title),
      worlds.map((world) => el("div", { class: "soft" }, world)),
    ),
    el("button", { type: "button", id: "theme", onclick: toggleTheme }),
  ];
}

function notes() {
  const lines = RUNS.filter((run) => run.notes.length).map((run) =>
    el("p", {}, RUNS.length > 1 ? el("b", {}, `${run.name}: `) : null, run.notes.join(" ")),
  );
  return el("div", { class: "notes", id: "notes", hidden: !lines.length }, lines);
}

// The system's choice holds until the button is pressed; then the button's, also after a reload.
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () =>
  (document.documentElement.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";
const nameTheme = () => {
  document.getElementById("theme").textContent = isDark() ? "☀ Light" : "☾ Dark";
};
function toggleTheme() {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  try {
    localStorage.setItem("softcount-theme", document.documentElement.dataset.theme);
  } catch {
    /* not kept: storage is off */
  }
  nameTheme();
}
try {
  const kept = localStorage.getItem("softcount-theme");
  if (kept) document.documentElement.dataset.theme = kept;
} catch {
  /* storage is off */
}

document.getElementById("top").append(...header());
document.getElementById("bar").append(
  el(
    "div",
    {},
    el(
      "nav",
      { "aria-label": "Sections" },
      SECTIONS.map(([id, title]) => el("a", { href: `#${id}` }, title)),
    ),
    RUNS.length > 1 ? legend() : null,
  ),
);
const section = ([id, title, lead, make]) =>
  el("section", { id }, el("h2", {}, title), lead ? el("p", { class: "lead" }, lead) : null, make());
const byId = Object.fromEntries(SECTIONS.map((parts) => [parts[0], section(parts)]));
if (byId.clip && RUNS.length === 1 && RUNS[0].worlds.length === 1) {
  const pair = el("div", { class: "pair" }, byId.world, byId.clip); // a world and what is done in it
  delete byId.clip;
  byId.world = pair;
}
document.getElementById("main").replaceChildren(notes(), ...Object.values(byId));
document
  .getElementById("foot")
  .append(
    `Made by softcount ${DATA.version} from ${RUNS.map((run) => `${whole(run.num_reports)} reports of ${run.name}`).join(", ")}.`,
  );
nameTheme();
prefersDark.addEventListener("change", nameTheme);
