"""What reports, pictures and commands ask of roles exists where the roles are far away."""

import re
from pathlib import Path

import pytest

import softcount
from softcount.launch.ray.actor_host import ActorHost
from softcount.launch.ray.far import FarActors, FarInference
from softcount.launch.ray.once import READ_ONLY

SOURCE = Path(softcount.__file__).parent
ASKERS = [SOURCE / "cli.py", *(SOURCE / "runs").glob("*.py"), *(SOURCE / "measure").glob("*.py")]
THERE = {"actor": dir(FarActors), "inference": dir(FarInference), "memory": READ_ONLY}


@pytest.mark.parametrize("role", THERE)
def test_whatever_is_asked_of_a_role_can_be_asked_from_afar(role):
    asked = {name for path in ASKERS for name in re.findall(rf"roles\.{role}\.(\w+)", path.read_text())}
    assert asked <= set(THERE[role])
    assert asked or role == "inference"


def test_the_first_actor_answers_what_all_know():
    asked = re.findall(r'_first\("(\w+)"', (SOURCE / "launch/ray/far.py").read_text())
    assert "keeps_episodes" in asked
    assert set(asked) <= set(dir(ActorHost))
