"""Play a task of Eight Rooms with the keyboard, or save a film strip and the map of a solver's run.

    python examples/play_eight_rooms.py throw_across              # a window (needs tkinter and pillow)
    python examples/play_eight_rooms.py throw_across --solver out.png

W A S D walk, the arrow keys look, space closes the hand while it is held down, E and Q push and pull it,
R and F turn what is held, Escape ends. The score is printed at the end of each episode.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from softcount.envs.eight_rooms.maps import film_strip, map_image
from softcount.envs.eight_rooms.player import Player
from softcount.envs.eight_rooms.solvers import SOLVERS
from softcount.envs.eight_rooms.tasks import TASKS
from softcount.envs.eight_rooms.vector import EightRooms, EightRoomsConfig

KEYS = {  # key: (index of the action, value)
    "w": (0, 1.0), "s": (0, -1.0), "d": (1, 1.0), "a": (1, -1.0),
    "Right": (2, 0.6), "Left": (2, -0.6), "Up": (3, 0.6), "Down": (3, -0.6),
    "r": (6, 1.0), "f": (6, -1.0), "e": (7, 10.0), "q": (7, -3.0), "space": (8, 1.0),
}  # fmt: skip


def action_of(pressed: set[str]) -> Any:
    """Turns the keys that are down into the nine values."""
    action = np.zeros((1, 9), np.float32)
    for key in pressed & KEYS.keys():
        index, value = KEYS[key]
        action[0, index] += value
    return np.clip(action, [-1] * 7 + [-10, 0], [1] * 7 + [10, 1]).astype(np.float32)


def play(config: EightRoomsConfig, seed: int, scale: int) -> None:
    """Opens a window and plays at fifteen steps a second."""
    import tkinter

    from PIL import Image, ImageTk

    env, pressed = EightRooms(config, seed=seed), set[str]()
    step = env.reset()
    window = tkinter.Tk()
    window.title(f"Eight Rooms: {config.task}")
    label = tkinter.Label(window)
    label.pack()
    window.bind(
        "<KeyPress>",
        lambda event: pressed.add(event.keysym if len(event.keysym) > 1 else event.keysym.lower()),
    )
    window.bind(
        "<KeyRelease>",
        lambda event: pressed.discard(event.keysym if len(event.keysym) > 1 else event.keysym.lower()),
    )
    window.bind("<Escape>", lambda event: window.destroy())

    def tick() -> None:
        nonlocal step
        if step.is_last[0]:
            print(f"score {float(env.batch.states['score'][0]):.1f}")
        step = env.step(action_of(pressed))
        image = Image.fromarray(step.observation[0]).resize((config.width * scale, config.height * scale), 0)
        label.image = ImageTk.PhotoImage(image)  # type: ignore[attr-defined]  # kept alive
        label.configure(image=label.image)  # type: ignore[attr-defined]
        window.after(66, tick)

    tick()
    window.mainloop()


def film(config: EightRoomsConfig, seed: int, path: Path, num_frames: int = 18) -> float:
    """Lets the solver play; writes some frames and, below, the map with its trail. Returns the score."""
    from PIL import Image

    env = EightRooms(config, seed=seed)
    frames, trail = [env.reset().observation[0]], []
    state = env.batch.states[0]
    solver = SOLVERS[config.task](Player(state, env.worlds.marks[0]))
    start = map_image(state)
    while not env.is_over[0]:
        frames.append(env.step(next(solver)[None]).observation[0])
        trail.append((float(state["agent"]["x"]), float(state["agent"]["y"])))
    chosen = [frames[i] for i in np.linspace(0, len(frames) - 1, num_frames).astype(int)]
    sheet, end = film_strip(chosen, columns=6), map_image(state, trail=trail)
    if len(end) > end.shape[1]:  # maps lie side by side below the strip
        start, end = start.transpose(1, 0, 2), end.transpose(1, 0, 2)
    maps = np.concatenate([start, np.full((len(start), 8, 3), 255, np.uint8), end], 1)
    shrink = max(1, -(-maps.shape[1] // sheet.shape[1]))
    maps = maps[::shrink, ::shrink]
    rest = np.full((len(maps), sheet.shape[1] - maps.shape[1], 3), 255, np.uint8)
    picture = np.concatenate([sheet, np.concatenate([maps, rest], 1)])
    Image.fromarray(picture).quantize(255, method=2).save(path, optimize=True)
    return float(state["score"])


def main() -> None:
    """Plays, or films the solver."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--variant", default="full", choices=("tiny", "small", "full"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--solver", type=Path, default=None, help="write a film strip of the solver there")
    parser.add_argument("--scale", type=int, default=8)
    arguments = parser.parse_args()
    repeat = 4 if arguments.solver else 2
    config = EightRoomsConfig(
        task=arguments.task, variant=arguments.variant, actions="continuous", action_repeat=repeat
    )
    if arguments.solver:
        print(f"score {film(config, arguments.seed, arguments.solver):.1f}")
    else:
        play(config, arguments.seed, arguments.scale)


if __name__ == "__main__":
    main()
