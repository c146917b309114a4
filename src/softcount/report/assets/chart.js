// A line chart of one metric with a curve per run. All charts share x axis, smoothing, hidden runs and cursor.
const VIEW = { x: "steps", smoothing: 0, hidden: new Set() };
const CHARTS = [];
const HEIGHT = 176;
const MARGIN = { left: 46, right: 10, top: 8, bottom: 22 };

function pointsOf(run, metric) {
  const series = run.curves.series[metric];
  if (!series) return [];
  return series.at.map((row, i) => ({ x: run.curves[VIEW.x][row], y: series.y[i] }));
}

// Moving average whose start is not pulled to zero; gaps stay gaps.
function smooth(points, weight) {
  let sum = 0,
    total = 0;
  return points.map(({ x, y }) => {
    if (!isNumber(y)) return { x, y };
    sum = weight * sum + y;
    total = weight * total + 1;
    return { x, y: sum / total };
  });
}

function pathOf(points, toX, toY) {
  let pen = "M";
  return points
    .map(({ x, y }) => {
      if (!isNumber(y)) {
        pen = "M";
        return "";
      }
      const piece = `${pen}${toX(x).toFixed(1)} ${toY(y).toFixed(1)}`;
      pen = "L";
      return piece;
    })
    .join("");
}

// All charts end where the longest run that is shown ends, so that the same place is the same time.
function lastX() {
  const ends = RUNS.filter((_, index) => !VIEW.hidden.has(index)).map(
    (run) => run.curves[VIEW.x].at(-1) || 0,
  );
  return Math.max(...ends, 0) || 1;
}

function range(values, kind) {
  let low = values.length ? Math.min(...values) : 0,
    high = values.length ? Math.max(...values) : 1;
  if (kind !== "number" || (low >= 0 && low < 0.6 * high)) low = Math.min(0, low);
  if (high === low) {
    const pad = Math.abs(high) * 0.1 || 1;
    high += pad;
    low = low === 0 ? 0 : low - pad;
  }
  const pad = (high - low) * 0.04;
  return [low === 0 ? 0 : low - pad, high + pad];
}

const whenIs = (x) => (VIEW.x === "steps" ? `step ${whole(x)}` : `after ${clock(x)}`);

class LineChart {
  constructor(metric, title, kind) {
    Object.assign(this, { metric, title, kind });
    this.last = el("span", { class: "last" });
    this.box = el("div");
    this.node = el(
      "figure",
      { class: "card chart", "data-metric": metric, style: "margin:0" },
      el("div", { class: "head" }, el("h4", {}, title, el("span", { class: "key" }, metric)), this.last),
      this.box,
    );
    new ResizeObserver(() => this.draw()).observe(this.box);
    CHARTS.push(this);
  }

  draw() {
    const width = this.box.clientWidth,
      height = HEIGHT;
    if (!width) return;
    this.curves = RUNS.map((run, index) => ({ run, index }))
      .filter(({ run, index }) => run.curves.series[this.metric] && !VIEW.hidden.has(index))
      .map(({ run, index }) => {
        const raw = pointsOf(run, this.metric);
        return { run, index, raw, line: VIEW.smoothing ? smooth(raw, VIEW.smoothing) : raw };
      });
    const values = this.curves.flatMap(({ raw }) => raw.map(({ y }) => y)).filter(isNumber);
    const [low, high] = range(values, this.kind);
    const end = lastX();
    this.toX = (x) => MARGIN.left + (x / end) * (width - MARGIN.left - MARGIN.right);
    this.fromX = (pixel) => ((pixel - MARGIN.left) / (width - MARGIN.left - MARGIN.right)) * end;
    this.toY = (y) =>
      height - MARGIN.bottom - ((y - low) / (high - low)) * (height - MARGIN.top - MARGIN.bottom);
    this.hover = draw("g", { class: "hover" });
    this.svg = draw(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`,
        height,
        role: "img",
        tabindex: 0,
        "aria-label": this.describe(),
        onpointermove: (event) => this.point(event),
        onpointerdown: (event) => this.point(event),
        onpointerleave: () => moveCursor(null),
        onkeydown: (event) => this.key(event),
        onblur: () => moveCursor(null),
      },
      this.axes(low, high, end, width, height),
      this.curves.map((curve) => this.line(curve)),
      this.hover,
    );
    this.box.replaceChildren(this.svg);
    this.showLast();
  }

  axes(low, high, end, width, height) {
    const across = ticks(low, high, 4).map((y) => [
      draw("line", {
        class: "gridline",
        x1: MARGIN.left,
        x2: width - MARGIN.right,
        y1: this.toY(y),
        y2: this.toY(y),
      }),
      draw(
        "text",
        { x: MARGIN.left - 7, y: this.toY(y) + 4, "text-anchor": "end" },
        this.kind === "share" ? `${Number((100 * y).toPrecision(3))}%` : compact(y),
      ),
    ]);
    const along = ticks(0, end, (width - 60) / 80).map((x, i, all) =>
      draw(
        "text",
        { x: this.toX(x), y: height - 6, "text-anchor": this.toX(x) > width - 28 ? "end" : "middle" },
        compact(x) + (VIEW.x === "hours" && i === all.length - 1 ? " h" : ""),
      ),
    );
    return [
      ...across.flat(),
      draw("line", {
        class: "axis",
        x1: MARGIN.left,
        x2: width - MARGIN.right,
        y1: height - MARGIN.bottom,
        y2: height - MARGIN.bottom,
      }),
      ...along,
    ];
  }

  line({ index, raw, line }) {
    const attributes = (points, extra) => ({
      class: `curve ${extra}`,
      d: pathOf(points, this.toX, this.toY),
      stroke: colour(index),
      "stroke-dasharray": dashes(index),
      "data-run": index,
      "data-points": points.filter(({ y }) => isNumber(y)).length,
    });
    const known = line.filter(({ y }) => isNumber(y));
    const dots =
      known.length > 12
        ? []
        : known.map(({ x, y }) =>
            draw("circle", {
              cx: this.toX(x),
              cy: this.toY(y),
              r: known.length === 1 ? 4 : 2.4,
              fill: colour(index),
            }),
          );
    return draw(
      "g",
      {},
      raw === line ? null : draw("path", attributes(raw, "raw")),
      draw("path", attributes(line, "main")),
      dots,
    );
  }

  nearest(points, x) {
    let best = null;
    for (const point of points)
      if (isNumber(point.y) && (!best || Math.abs(point.x - x) < Math.abs(best.x - x))) best = point;
    return best;
  }

  cursor(x) {
    if (!this.hover) return [];
    if (x === null) {
      this.hover.replaceChildren();
      return [];
    }
    const isOver = (run) => x > run.curves[VIEW.x].at(-1) + 0.03 * lastX();
    const found = this.curves
      .filter(({ run }) => !isOver(run))
      .map((curve) => ({ ...curve, at: this.nearest(curve.line, x) }))
      .filter(({ at }) => at);
    const line = found.length
      ? draw("line", {
          class: "cursor",
          x1: this.toX(found[0].at.x),
          x2: this.toX(found[0].at.x),
          y1: MARGIN.top,
          y2: HEIGHT - MARGIN.bottom,
        })
      : null;
    this.hover.replaceChildren(
      ...[line].filter(Boolean),
      ...found.map(({ index, at }) =>
        draw("circle", {
          cx: this.toX(at.x),
          cy: this.toY(at.y),
          r: 4,
          fill: colour(index),
          stroke: "var(--card)",
          "stroke-width": 1.5,
        }),
      ),
    );
    return found;
  }

  point(event, x = this.fromX(event.clientX - this.svg.getBoundingClientRect().left)) {
    moveCursor(x);
    const found = this.cursor(x);
    if (!found.length) return hideTip();
    showTip(
      event,
      whenIs(found[0].at.x),
      found.map(({ run, index, at }) => [
        colour(index),
        RUNS.length > 1 ? run.name : this.title,
        show(at.y, this.kind),
      ]),
    );
  }

  key(event) {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key],
      points = (this.curves[0] || { line: [] }).line.filter(({ y }) => isNumber(y));
    if (!move || !points.length) return;
    event.preventDefault();
    this.at = Math.min(points.length - 1, Math.max(0, (this.at ?? points.length) + move));
    const box = this.svg.getBoundingClientRect(),
      x = points[this.at].x;
    this.point({ clientX: box.left + this.toX(x), clientY: box.top + 30 }, x);
  }

  showLast() {
    const values = this.curves
      .map(({ raw, index }) => [index, raw.filter(({ y }) => isNumber(y)).at(-1)])
      .filter(([, point]) => point);
    this.last.replaceChildren(
      ...(values.length > 3 ? [] : values).map(([index, { x, y }]) =>
        el(
          "span",
          { style: RUNS.length > 1 ? `color:${colour(index)}` : "", title: whenIs(x) },
          this.kind === "share" ? show(y, "share") : plain(y),
          el("small", {}, VIEW.x === "steps" ? `at ${compact(Number(x.toPrecision(3)))}` : ""),
        ),
      ),
    );
  }

  describe() {
    const ends = this.curves.map(
      ({ run, raw }) => `${run.name}: ${raw.length} points, last ${show(raw.at(-1)?.y, this.kind)}`,
    );
    return `${this.title} (${this.metric}). ${ends.join("; ")}`;
  }
}

function moveCursor(x) {
  CHARTS.forEach((chart) => chart.cursor(x));
  if (x === null) hideTip();
}
const redrawCharts = () => CHARTS.forEach((chart) => chart.draw());
