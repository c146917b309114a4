"""The interface that DM-HARD-8 published.

Nine actions with bounds, six observations, and a table of discrete actions.

Shared by the adapter to its servers (`dm_hard_8.py`) and by Eight Rooms, so that one table serves both.
"""

from __future__ import annotations

ACTIONS = {
    "MOVE_BACK_FORWARD": (-1.0, 1.0),
    "STRAFE_LEFT_RIGHT": (-1.0, 1.0),
    "LOOK_LEFT_RIGHT": (-1.0, 1.0),
    "LOOK_DOWN_UP": (-1.0, 1.0),
    "HAND_ROTATE_AROUND_FORWARD": (-1.0, 1.0),
    "HAND_ROTATE_AROUND_RIGHT": (-1.0, 1.0),
    "HAND_ROTATE_AROUND_UP": (-1.0, 1.0),
    "HAND_PUSH_PULL": (-10.0, 10.0),
    "HAND_GRIP": (0.0, 1.0),
}
"""The nine actions and their published bounds, in the order of a continuous action vector."""
IMAGE, SCORE = "RGB_INTERLEAVED", "Score"
SENSES = ("ACCELERATION", "HAND_FORCE", "HAND_IS_HOLDING", "HAND_DISTANCE")


def action_table() -> tuple[dict[str, float], ...]:
    """Lists 38 discrete actions: move, strafe, look at two speeds, all with and without grip, and the hand.

    No table was published with the paper; what an entry leaves out is 0.

    >>> len(action_table()), action_table()[0], action_table()[1]
    (38, {}, {'MOVE_BACK_FORWARD': 1.0})
    """
    free: list[dict[str, float]] = [{}]
    free += [{"MOVE_BACK_FORWARD": sign} for sign in (1.0, -1.0)]
    free += [{"STRAFE_LEFT_RIGHT": sign} for sign in (-1.0, 1.0)]
    for axis in ("LOOK_LEFT_RIGHT", "LOOK_DOWN_UP"):
        free += [{axis: speed} for speed in (-1.0, -0.3, 0.3, 1.0)]
    free += [{"MOVE_BACK_FORWARD": 1.0, "LOOK_LEFT_RIGHT": sign} for sign in (-0.3, 0.3)]
    grip = [{**action, "HAND_GRIP": 1.0} for action in free]
    hand = [{"HAND_PUSH_PULL": sign, "HAND_GRIP": 1.0} for sign in (10.0, -10.0)]
    for axis in ("FORWARD", "RIGHT", "UP"):
        hand += [{f"HAND_ROTATE_AROUND_{axis}": sign, "HAND_GRIP": 1.0} for sign in (1.0, -1.0)]
    return (*free, *grip, *hand)
