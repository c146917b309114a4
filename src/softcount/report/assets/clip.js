// What the agent does: frames cut from one film strip, with the bonus of every step beside them.
const FRAME_MS = 90;

function clipSection() {
  return [
    fill(
      runGrid(),
      {},
      RUNS.map((run, index) => {
        const { clip } = run;
        const card = el(
          "div",
          { class: "card clip", "data-run": index, style: `--ink:${colour(index)}` },
          runTitle(run, index),
          taskTitle(clip),
        );
        if (clip.episodes) card.append(el("p", { class: "soft" }, describePlay(clip, run.checkpoint)));
        card.append(clip.image ? player(clip) : empty(clip.missing));
        return card;
      }),
    ),
  ];
}

function describePlay(clip, step) {
  const total = clip.rewards.reduce((sum, reward) => sum + reward, 0),
    every = clip.stride > 1 ? `, every ${clip.stride}th step shown` : "";
  const others =
    clip.episodes > 1
      ? ` The ${clip.episodes} episodes played: mean return ${plain(clip.mean_return)}, a reward in ${show(clip.success_rate, "share")}, mean length ${plain(clip.mean_length)}.`
      : "";
  return [
    el(
      "b",
      { style: "color:var(--text)" },
      `Return ${plain(total)} in ${whole(clip.rewards.length - 1)} steps`,
    ),
    `, played with ${clip.behaviour} as learned at step ${whole(step)}${every}.${others}`,
  ];
}

function player(clip) {
  const canvas = el("canvas", {
    width: clip.width,
    height: clip.height,
    role: "img",
    "aria-label": "Frames of an evaluation episode",
  });
  const film = new Image();
  const slider = el("input", {
    type: "range",
    min: 0,
    max: clip.num_frames - 1,
    value: 0,
    step: 1,
    "aria-label": "Frame",
    oninput: () => {
      stop();
      seek(Number(slider.value));
    },
  });
  const button = el("button", { type: "button", onclick: () => (timer ? stop() : start()) }, "▶ Play");
  const readout = el("p", { class: "soft", style: "font-size:0.85rem;margin:0 0 8px" });
  const strip = bonusStrip(clip, (step) => {
    stop();
    seek(Math.round(step / clip.stride));
  });
  let frame = 0,
    timer = null;

  function seek(to) {
    frame = Math.min(clip.num_frames - 1, Math.max(0, to));
    const { width, height, columns } = clip,
      step = Math.min(frame * clip.stride, clip.rewards.length - 1);
    canvas
      .getContext("2d")
      .drawImage(
        film,
        (frame % columns) * width,
        Math.floor(frame / columns) * height,
        width,
        height,
        0,
        0,
        width,
        height,
      );
    canvas.dataset.frame = frame;
    slider.value = frame;
    readout.textContent = `step ${step} · bonus ${show(clip.intrinsics[step], "number")} · reward ${show(clip.rewards[step], "number")}`;
    strip.mark(step);
  }
  function start() {
    if (frame === clip.num_frames - 1) seek(0);
    button.textContent = "❚❚ Pause";
    timer = setInterval(() => (frame < clip.num_frames - 1 ? seek(frame + 1) : stop()), FRAME_MS);
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    button.textContent = "▶ Play";
  }
  film.onload = () => seek(0);
  film.src = clip.image;
  return el(
    "div",
    { class: "film" },
    canvas,
    el("div", { class: "player" }, button, slider),
    readout,
    strip.node,
  );
}

function bonusStrip(clip, onseek) {
  const width = 400,
    height = 64,
    num = clip.intrinsics.length,
    top = Math.max(...clip.intrinsics.filter(isNumber), 1e-12);
  const toX = (step) => (num > 1 ? (step / (num - 1)) * width : 0),
    toY = (bonus) => height - 4 - (bonus / top) * (height - 12);
  const points = clip.intrinsics.map((y, x) => ({ x, y }));
  const mark = draw("line", { class: "cursor", y1: 0, y2: height });
  const paid = clip.rewards.map((reward, step) =>
    reward ? draw("circle", { cx: toX(step), cy: 5, r: 4, fill: "var(--run-1)" }) : null,
  );
  const node = draw(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": "Bonus of every step",
      style: "cursor:pointer;overflow:hidden",
      onpointerdown: (event) => {
        const box = node.getBoundingClientRect();
        onseek(((event.clientX - box.left) / box.width) * (num - 1));
      },
    },
    draw("rect", { width, height, fill: "var(--grid)", rx: 6 }),
    draw("path", {
      class: "curve",
      "vector-effect": "non-scaling-stroke",
      d: pathOf(points, toX, toY),
      stroke: "var(--ink)",
      "data-points": num,
    }),
    paid,
    mark,
  );
  const label =
    (clip.intrinsics.some(Boolean)
      ? `Bonus of every step, up to ${plain(top)}`
      : "No step was paid a bonus") + (clip.rewards.some(Boolean) ? "; dots are rewards" : "");
  return {
    node: el("div", {}, node, el("p", { class: "soft", style: "font-size:0.8rem;margin:4px 0 0" }, label)),
    mark: (step) => {
      mark.setAttribute("x1", toX(step));
      mark.setAttribute("x2", toX(step));
    },
  };
}
