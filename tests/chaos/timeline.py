"""Draws a run through five faults: `PYTHONPATH=tests python -m chaos.timeline`."""

import argparse
import json
from itertools import pairwise
from pathlib import Path

from experiments.drawing import COLOURS, new_figure, save_picture

IMAGES = Path("docs/images")


def rates(found):
    """Embeddings counted per second between two signs of life of the memory."""
    rows = found["settings"]["rows"]
    pulses = [(event["at"], event["position"]) for event in found["events"] if event["what"] == "memory"]
    pairs = list(pairwise(pulses))
    return [b[0] for _, b in pairs], [(b[1] - a[1]) * rows / (b[0] - a[0]) for a, b in pairs]


def draw(found):
    figure = new_figure(11, 4)
    axes = figure.subplots()
    times, values = rates(found)
    axes.fill_between(times, values, step="pre", color=COLOURS[0], alpha=0.25)
    axes.step(times, values, where="pre", color=COLOURS[0], linewidth=1)
    top = max(values)
    for number, fault in enumerate(found["faults"]):
        back = fault["back_after_s"] or 0.0
        end = max(fault["at"] + back, fault["at"] + fault["lasted_s"] + back * (fault["fault"] == "pause"))
        axes.axvspan(fault["at"], end, color=COLOURS[1], alpha=0.3, linewidth=0)
        said = {"kill": "killed", "hang": "hangs, is killed", "pause": "stopped for a while"}
        text = f"{fault['role']}\n{said.get(fault['fault'], fault['fault'])}\n{end - fault['at']:.1f} s"
        axes.text(fault["at"], top * (1.06 + 0.2 * (number % 2)), text, fontsize=8, va="bottom")
    axes.set_ylim(0, top * 1.5)
    axes.set_xlim(0, times[-1])
    axes.set_xlabel("seconds")
    axes.set_ylabel("embeddings counted per second")
    counted, lost, doubled = (found["reckoning"][name] for name in ("embeddings_counted", "lost", "doubled"))
    axes.set_title(f"{counted:,} embeddings: {lost} lost, {doubled} doubled")
    return figure


def main():
    parser = argparse.ArgumentParser(prog="python -m chaos.timeline", description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("results/ray/five_faults.json"))
    args = parser.parse_args()
    for path in save_picture(draw(json.loads(args.results.read_text())), "ray_faults", IMAGES):
        print(path)


if __name__ == "__main__":
    main()
