"""What the supervisor makes of signs of life."""

import json
import time
from typing import NamedTuple

import pytest

from softcount.launch.ray.supervisor import Supervisor, Watched


class Pulse(NamedTuple):
    pid: int = 5
    host: str = "one"
    node_id: str = "n"
    boot: str = "a"
    is_ready: bool = True
    numbers: dict = {"rows": 10.0}  # noqa: RUF012


class MemoryPulse(NamedTuple):
    pid: int
    host: str = "one"
    epoch: int = 1
    position: int = 7


def test_the_first_sign_of_life_is_no_restart_and_another_process_is():
    role = Watched("actor 0", None)
    assert role.is_away
    assert not role.take(Pulse())
    assert not role.is_away
    assert not role.take(Pulse())
    assert role.restarts == 0
    assert role.take(Pulse(boot="b", pid=6, is_ready=False))
    assert (role.restarts, role.pid, role.is_ready) == (1, 6, False)
    assert not role.take(Pulse(boot="b", pid=6))


def test_the_memory_is_known_by_its_process_and_epoch():
    role = Watched("memory", None)
    assert [role.take(MemoryPulse(1)), role.take(MemoryPulse(1))] == [False, False]
    assert role.take(MemoryPulse(2, epoch=2))
    assert role.numbers == {"requests": 7.0}


def test_what_was_said_before_a_life_began_is_not_listened_to():
    role = Watched("actor 0", None)
    role.take(Pulse(is_ready=False))
    role.answer = "on its way"
    role.trust()
    assert role.is_ready
    assert role.answer is None


def test_rates_are_per_second_between_two_signs_of_one_process():
    role = Watched("actor 0", None)
    role.take(Pulse(numbers={"rows": 100.0}))
    role.heard = time.monotonic() - 2.0
    role.take(Pulse(numbers={"rows": 300.0}))
    assert role.rates["rows"] == pytest.approx(100.0, rel=0.05)
    role.take(Pulse(boot="b", numbers={"rows": 0.0}))
    assert role.rates["rows"] == pytest.approx(100.0, rel=0.05)  # nothing is known yet of the new one


def test_the_status_is_written_whole_and_not_into_a_folder_that_is_gone(tmp_path):
    supervisor = Supervisor(tmp_path, "n", 1.0)
    supervisor.roles["actor 0"] = Watched("actor 0", None)
    supervisor.roles["actor 0"].take(Pulse())
    supervisor.write_status({"step": 3, "updates": 1})
    content = json.loads((tmp_path / "status.json").read_text())
    assert content["step"] == 3
    assert content["roles"][0]["pid"] == 5
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]
    Supervisor(tmp_path / "gone", "n", 1.0).write_status({"step": 3, "updates": 1})
    assert not (tmp_path / "gone").exists()
