"""A plan on paper for 10⁹ frames a day, from a model of the pipeline that is fitted to what was measured.

    python benchmarks/ray_plan.py        # from results/ray/cost*.json; results/ray/plan.json

The model has two numbers for each role: CPU seconds per row, and CPU seconds per message.

    cpu(role) = rows · a(role) + messages · b(role)

An actor with E environments sends one message per E rows to inference and to the memory. The numbers
are fitted to runs with one and two actors, and the model is asked about four, which were measured too.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path("results/ray")
PICTURE = Path("docs/images/ray_roles.png")
ROLES = ("actor", "inference", "memory", "trainer", "ray itself")
FRAMES_PER_DAY, FRAME_SKIP, SECONDS_PER_DAY = 1e9, 4, 86_400
ENVS_PER_ACTOR = 32
PAPER_RATIO = 6.0  # of the paper's Atari table; what was measured had another, and learning goes with it
FRAME_BYTES, STATE_BYTES = 84 * 84, 2 * 512 * 4
USED = 0.7
"""Share of a core that is planned with."""


def medians(turns: list[dict[str, Any]]) -> dict[str, float]:
    """CPU seconds per row of each role, the median over rounds."""
    return {role: float(np.median([t["cpu"].get(role, 0.0) / t["rows"] for t in turns])) for role in ROLES}


def fit(one: dict[str, float], two: dict[str, float], messages: tuple[float, float]) -> dict[str, Any]:
    """Solves for seconds per row and per message from two runs; neither is ever below 0."""
    fitted = {}
    for role in ROLES:
        per_message = max(0.0, (two[role] - one[role]) / (messages[1] - messages[0]))
        fitted[role] = {
            "per_row": max(0.0, one[role] - per_message * messages[0]),
            "per_message": per_message,
        }
    return fitted


def predict(fitted: dict[str, Any], messages: float) -> dict[str, float]:
    """CPU seconds per row of each role."""
    return {role: x["per_row"] + x["per_message"] * messages for role, x in fitted.items()}


def check(cost: dict[str, Any]) -> dict[str, Any]:
    """Fits one and two actors, predicts four, and says how far off that was."""
    num_envs = cost["num_envs"]
    measured = {n: medians(cost["turns"][f"{n} actors"]) for n in (1, 2, 4) if f"{n} actors" in cost["turns"]}
    per_row = {n: n / num_envs for n in (1, 2, 4)}  # messages to each of inference and memory
    fitted = fit(measured[1], measured[2], (per_row[1], per_row[2]))
    found: dict[str, Any] = {"fitted_seconds": fitted, "measured": measured}
    if 4 in measured:
        expected = predict(fitted, per_row[4])
        total, real = sum(expected.values()), sum(measured[4].values())
        found["four_actors"] = {
            "predicted": expected,
            "predicted_total": total,
            "measured_total": real,
            "predicted_over_measured": total / real,
        }
    return found


def plan(fitted: dict[str, Any], ratio: float) -> dict[str, Any]:
    """How many processes of each role 10⁹ frames a day need, if each row costs what it was measured to."""
    rows = FRAMES_PER_DAY / FRAME_SKIP / SECONDS_PER_DAY
    seconds = predict(fitted, 1 / ENVS_PER_ACTOR)
    seconds["trainer"] *= PAPER_RATIO / ratio
    cores = {role: rows * x / USED for role, x in seconds.items()}
    request = FRAME_BYTES + 2 * STATE_BYTES  # there and back
    return {
        "rows_per_second": rows,
        "envs_per_actor": ENVS_PER_ACTOR,
        "messages_per_second_to_memory": rows / ENVS_PER_ACTOR,
        "cores": cores,
        "bytes_per_second": {
            "actors and inference": rows * request,
            "actors to trainer": rows * (FRAME_BYTES + STATE_BYTES),
            "actors and memory": rows * 4 * 32,
        },
    }


def draw(cost: dict[str, Any], path: Path) -> None:
    """Draws the roles and the messages between them with the rates of the run with two actors."""
    from matplotlib.figure import Figure

    turn = cost["turns"]["2 actors"][-1]
    seconds, messages = turn["seconds"], turn["messages"]
    rate = {name: x / seconds for name, x in messages.items()}
    share = {role: turn["cpu"].get(role, 0.0) / seconds for role in ROLES}
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_xlim(0, 10)
    axes.set_ylim(1.1, 5)
    boxes = {
        "actor": (1.3, 2.5, "2 actors\n32 environments each"),
        "inference": (5.0, 4.3, "inference"),
        "memory": (5.0, 2.5, "memory\njournal"),
        "trainer": (8.7, 2.5, "trainer\nreplay and learner"),
    }
    for role, (x, y, text) in boxes.items():
        label = f"{text}\n{share[role]:.0%} of a core"
        style = {"boxstyle": "round,pad=0.5", "fc": "white", "ec": "0.3"}
        axes.text(x, y, label, ha="center", va="center", bbox=style, fontsize=9)
    sent = rate["rows"] / 32 / 8
    arrows = [
        ((1.6, 3.2), (4.1, 4.3), f"observations, policies\n{rate['inference']:.0f} calls/s", (2.3, 4.2)),
        ((2.6, 2.5), (4.2, 2.5), f"features, pay\n{rate['memory']:.0f} calls/s", (3.4, 2.85)),
        ((1.6, 1.8), (8.0, 1.8), f"8 rows a message: {sent:.0f}/s, {rate['rows']:,.0f} rows/s", (4.8, 1.4)),
        (
            (8.4, 3.3),
            (5.9, 4.3),
            f"parameters, every 8 updates\n{turn['updates'] / seconds / 8:.0f}/s",
            (7.9, 4.2),
        ),
        ((7.5, 2.5), (5.8, 2.5), "bonuses of today", (6.65, 2.7)),
    ]
    for start, end, text, at in arrows:
        kind = "<->" if "calls" in text or "today" in text else "->"  # whoever asks waits for the answer
        axes.annotate("", end, start, arrowprops={"arrowstyle": kind, "color": "tab:blue"})
        axes.text(*at, text, ha="center", va="center", fontsize=8, color="tab:blue")
    axes.set_title(
        f"{turn['steps'] / seconds:,.0f} steps/s, {turn['updates'] / seconds:.0f} updates/s", fontsize=10
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "plan.json")
    parsed = parser.parse_args()
    laptop = json.loads((HERE / "cost.json").read_text())
    found: dict[str, Any] = {"model_on_the_laptop_preset": check(laptop)}
    draw(laptop, PICTURE)
    atari = HERE / "cost_atari.json"
    if atari.exists():
        content = json.loads(atari.read_text())
        fitted = check(content)["fitted_seconds"]
        ratio = float(np.median([t["replay_ratio"] for t in content["turns"]["2 actors"]]))
        found["paper_network_on_this_processor"] = {
            "fitted_seconds": fitted,
            "measured_replay_ratio": ratio,
            "plan": plan(fitted, ratio),
        }
    parsed.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
