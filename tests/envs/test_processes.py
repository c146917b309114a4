"""Copies in processes of their own are the copies of one process: rows, states, errors."""

import os
import pickle
import signal
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pytest

from softcount.envs import processes
from softcount.envs.make import make
from softcount.envs.processes import ProcessVector

SMALL = {"size": (42, 40), "max_noops": 3, "max_steps": 25, "actions": ("NOOP", "LEFT", "RIGHT", "FIRE")}
GAME = "atari/montezuma_revenge"


@pytest.fixture
def envs():
    """Five copies here, and the same in three processes."""
    made = [make(GAME, num_envs=5, seed=2, num_processes=n, **SMALL) for n in (1, 3)]
    yield made
    for env in made:
        env.close()


def equal(ours, theirs):
    assert type(ours) is type(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert getattr(mine, "dtype", None) == getattr(other, "dtype", None)
        assert np.array_equal(mine, other)


def test_processes_change_nothing(envs):
    here, elsewhere = envs
    assert isinstance(elsewhere, ProcessVector)
    for name in ("observation_spec", "action_spec", "num_places", "task_names", "map_shape", "num_envs"):
        assert getattr(here, name) == getattr(elsewhere, name), name
    assert np.array_equal(here.task_ids, elsewhere.task_ids)
    rows = [env.reset() for env in envs]
    rng = np.random.default_rng(0)
    ends = 0
    for t in range(60):
        equal(*rows)
        if t == 30:  # what was saved in one process goes on in three, and the other way round
            states = [env.get_state() for env in envs]
            assert np.array_equal(states[0]["is_over"], states[1]["is_over"])
            for env, state in zip(envs, reversed(states), strict=True):
                env.set_state(state)
        actions = rng.integers(4, size=5)
        rows = [env.step(actions) for env in envs]
        ends += int(rows[0].is_last.sum())
    assert ends >= 10  # also across episodes, whose no-ops are drawn by each copy
    assert here.num_frames == elsewhere.num_frames > 4 * 50 * 5
    assert [here.cell_of(place) for place in (0, 300)] == [elsewhere.cell_of(place) for place in (0, 300)]
    equal(*[env.reset(seed=7) for env in envs])


def test_copies_differ_from_each_other(envs):
    """Each has a seed of its own: they do not all begin with the same number of no-ops."""
    _, elsewhere = envs
    elsewhere.reset()
    frames = [state["num_frames"] for state in elsewhere.get_state()["envs"]]
    assert len(frames) == 5
    assert len(set(frames)) > 1


def test_an_error_of_a_copy_arrives_and_the_others_still_answer(envs):
    _, elsewhere = envs
    elsewhere.reset()
    with pytest.raises(ValueError, match="expected"):
        elsewhere.step(np.full(5, 4))
    with pytest.raises(TypeError):
        elsewhere._ask("cell_of", [(0,), ("nowhere",), (0,)])
    with pytest.raises(AttributeError, match=r"lambda|local"):  # what cannot be sent is sent to nobody
        elsewhere._ask("cell_of", [(0,), (lambda: 0,), (0,)])
    assert elsewhere.step(np.zeros(5, np.int64)).reward.shape == (5,)


def test_a_state_of_other_copies_is_refused(envs):
    here, elsewhere = envs
    here.reset()
    state = here.get_state()
    with pytest.raises(ValueError, match="the state is of 4 copies; expected 5"):
        elsewhere.set_state({**state, "envs": state["envs"][:4]})


def test_a_killed_process_is_named(envs):
    _, elsewhere = envs
    elsewhere.reset()
    os.kill(elsewhere._workers[1].process.pid, signal.SIGKILL)
    elsewhere._workers[1].process.join()
    with pytest.raises(RuntimeError, match="the process of copies 2 to 3 has ended, exit code -9; a run"):
        elsewhere.step(np.zeros(5, np.int64))
    assert elsewhere.cell_of(0) == envs[0].cell_of(0)  # nobody reads the answer to an earlier question


def test_after_an_interrupt_no_old_answer_is_taken_for_a_new_one(envs, monkeypatch):
    _, elsewhere = envs
    elsewhere.reset()

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(elsewhere._workers[1], "answer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        elsewhere.step(np.zeros(5, np.int64))
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="was interrupted while its processes answered; make it anew"):
        elsewhere.step(np.zeros(5, np.int64))


def test_a_signal_to_the_whole_group_leaves_the_processes_to_the_one_who_asks(envs):
    """A scheduler ends a group; the run takes a checkpoint then, and needs its copies for it."""
    _, elsewhere = envs
    elsewhere.reset()
    for worker in elsewhere._workers:
        os.kill(worker.process.pid, signal.SIGTERM)
        os.kill(worker.process.pid, signal.SIGINT)
    assert len(elsewhere.get_state()["envs"]) == 5


class Odd(Exception):
    """Can be packed, and not unpacked."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def test_an_error_that_cannot_travel_says_what_it_said():
    is_good, error = pickle.loads(processes._failure(Odd("one", "two")))
    assert not is_good
    assert type(error) is RuntimeError
    assert str(error) == "Odd: one and two"
    is_good, error = pickle.loads(processes._failure(ValueError("plain")))
    assert type(error) is ValueError


def test_what_cannot_be_built_is_said_and_leaves_no_process():
    with pytest.raises(ValueError, match="no action is called 'LFET'"):
        make(GAME, num_envs=2, num_processes=2, actions=("LFET",))
    assert not active_children()
    for wrong in (0, 1.5, True):
        with pytest.raises(
            ValueError, match=f"num_processes is {wrong}; expected a whole number of at least 1"
        ):
            make(GAME, num_processes=wrong)


def test_closing_ends_the_processes():
    env = make(GAME, num_envs=2, num_processes=7, **SMALL)  # no more processes than copies
    assert len(active_children()) == 2
    env.close()
    env.close()
    assert not active_children()
    with pytest.raises(RuntimeError, match="the environment is closed; make it anew"):
        env.reset()


def test_other_worlds_lists_of_tasks_and_noise_are_shared_out_too():
    name = f"noisy-{GAME}"
    here, elsewhere = (make(name, num_envs=2, seed=1, num_processes=n, **SMALL) for n in (1, 2))
    equal(here.reset(), elsewhere.reset())
    assert here.map_shape == elsewhere.map_shape
    here.close()
    elsewhere.close()
    tasks = "gym/CartPole-v1,gym/CartPole-v1:sutton_barto_reward=true"
    here, elsewhere = (make(tasks, num_envs=4, seed=1, num_processes=n) for n in (1, 2))
    equal(here.reset(), elsewhere.reset())
    for _ in range(30):
        actions = np.array([0, 1, 0, 1])
        equal(here.step(actions), elsewhere.step(actions))
    elsewhere.close()


KILLED = """
import os, signal
from softcount.envs.make import make
if __name__ == "__main__":
    env = make("gym/CartPole-v1", num_envs=2, num_processes=2)
    print(*(worker.process.pid for worker in env._workers), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_processes_end_with_the_one_that_asks_them(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL
    left = {int(pid) for pid in done.stdout.split()}
    assert len(left) == 2
    until = time.monotonic() + 20
    while left and time.monotonic() < until:
        left = {pid for pid in left if not is_over(pid)}
        time.sleep(0.1)
    assert not left


def is_over(pid):
    """Whether a process is gone, or dead and only waits for somebody to take note."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True
