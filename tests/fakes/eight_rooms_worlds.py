"""Small levels and readings that the tests of Eight Rooms share."""

import numpy as np

from softcount.envs.eight_rooms import core
from softcount.envs.eight_rooms.level import Builder

NOTHING = np.zeros(9, np.float32)
GRIP = np.array([0, 0, 0, 0, 0, 0, 0, 0, 1], np.float32)


def action(**values):
    """An action vector from short names."""
    names = ("move", "strafe", "look", "nod", "forward", "right", "turn", "push", "grip")
    return np.array([values.get(name, 0.0) for name in names], np.float32)


def room(columns=20, rows=20, *, seed=0):
    """A builder with one empty room, the agent in its middle looking along x."""
    builder = Builder(np.random.default_rng(seed), columns + 2, rows + 2)
    builder.draw_surfaces()
    builder.ground((1, 1, columns + 1, rows + 1))
    builder.start((0.5 + 0.25 * columns, 0.5 + 0.25 * rows), 0.0)
    return builder


class Single:
    """One world, stepped by ticks."""

    def __init__(self, builder, symmetry=0, **options):
        self.batch = core.Batch(1, 96, 72, **options)
        self.level = builder.finish(symmetry)
        self.batch.load(0, self.level.state)
        self.state = self.batch.states[0]
        self.agent, self.bodies = self.state["agent"], self.state["bodies"]

    def tick(self, values=NOTHING, ticks=1):
        self.batch.step_blindly(values[None], np.array([ticks], np.int32))

    def image(self):
        return self.batch.step(NOTHING[None], np.zeros(1, np.int32))[0]


def energy(state):
    """Kinetic and potential energy of all bodies."""
    bodies = state["bodies"][: int(state["num_bodies"])]
    alive = bodies[bodies["flags"] & core.ALIVE > 0]
    speed2 = sum(alive[v].astype(np.float64) ** 2 for v in ("vx", "vy", "vz"))
    return float((alive["mass"] * (0.5 * speed2 + 9.81 * alive["z"])).sum())


def depth_in_cells(state, index):
    """How far a body's outline is inside cells higher than its bottom: 0 where it is free.

    In metres, sampled.
    """
    body = state["bodies"][index]
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    if body["kind"] == core.BOX:
        u = np.clip(np.cos(angles) * 2, -1, 1) * body["hx"]
        v = np.clip(np.sin(angles) * 2, -1, 1) * body["hy"]
    else:
        u, v = np.cos(angles) * body["hz"], np.sin(angles) * body["hz"]
    c, s = np.cos(body["yaw"]), np.sin(body["yaw"])
    deepest = 0.0
    for x, y in zip(body["x"] + c * u - s * v, body["y"] + s * u + c * v, strict=True):
        column, row = int(x / 0.5), int(y / 0.5)
        if (
            state["heights"][row, column]
            > (body["z"] - body["hz"] if body["kind"] == core.BOX else body["z"]) + 0.03
        ):
            inside = min(x - 0.5 * column, 0.5 * column + 0.5 - x, y - 0.5 * row, 0.5 * row + 0.5 - y)
            deepest = max(deepest, inside)
    return deepest
