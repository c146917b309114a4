// A live page: asks its server for newer data and draws again what has changed.
const ASK_MS = 1000;
const QUIET_SECONDS = 120; // without a report for longer, nobody knows whether a run still trains
const LIVE = el("div", { id: "live", role: "status" });
document.querySelector("#top > div").append(LIVE);
let tag = "",
  isLost = false;
let clockAhead = Date.now() / 1000 - DATA.live.now;

function describeProgress(run) {
  const step = run.final.step || 0,
    planned = Number(run.planned);
  const ago = Math.max(0, Date.now() / 1000 - clockAhead - run.reported_at);
  const share = planned ? ` of ${whole(planned)} (${show(step / planned, "share")})` : "";
  const last = run.reported_at ? `last report ${Math.round(ago)} s ago` : "no report yet";
  if (planned && step >= planned) return ["done", `finished at step ${whole(step)}`];
  if (run.reported_at && ago > QUIET_SECONDS)
    return ["quiet", `at step ${whole(step)}${share}; no report for ${clock(ago / 3600)}: stopped, or slow`];
  return ["training", `training, step ${whole(step)}${share}, ${last}`];
}

function showProgress() {
  const lines = RUNS.map((run, index) => {
    const [state, text] = describeProgress(run);
    return el(
      "div",
      { class: `soft ${state}`, "data-run": index },
      el("i", {}),
      RUNS.length > 1 ? `${run.name}: ${text}` : text,
    );
  });
  const lost = el("div", { class: "lost" }, "The server is gone: start `softcount watch` again.");
  LIVE.replaceChildren(...lines, ...(isLost ? [lost] : []));
}

const metricsOf = () => [...new Set(RUNS.flatMap((run) => Object.keys(run.curves.series)))].sort().join();

// Takes new data over; charts stay where they are and are drawn again, other sections are made anew.
function refresh(data) {
  const before = metricsOf();
  RUNS.splice(0, RUNS.length, ...data.runs);
  Object.assign(DATA, data, { runs: RUNS });
  clockAhead = Date.now() / 1000 - DATA.live.now;
  const isNew = metricsOf() !== before;
  if (isNew) CHARTS.length = 0;
  document.getElementById("notes").replaceWith(notes());
  for (const parts of SECTIONS)
    if (["summary", "world", "memory", "time"].includes(parts[0]) || (isNew && parts[0] === "curves"))
      document.getElementById(parts[0]).replaceWith(section(parts));
  if (!isNew) redrawCharts();
  document.documentElement.dataset.refreshed = Number(document.documentElement.dataset.refreshed || 0) + 1;
}

async function ask() {
  try {
    const answer = await fetch("data", { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
    if (answer.status === 200) {
      tag = answer.headers.get("ETag");
      refresh(await answer.json());
    }
    isLost = answer.status !== 200 && answer.status !== 304;
  } catch {
    isLost = true;
  }
  showProgress();
  setTimeout(ask, ASK_MS);
}
showProgress();
setTimeout(ask, ASK_MS);
