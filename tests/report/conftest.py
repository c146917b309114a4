import pytest
from report.runs import TWO_TASKS, train


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A finished run with evaluations, memory and checkpoint; not to be changed."""
    return train(tmp_path_factory.mktemp("report") / "with-bonus")


@pytest.fixture(scope="session")
def plain_run(tmp_path_factory):
    """A finished run without bonus and without evaluation; not to be changed."""
    return train(tmp_path_factory.mktemp("report") / "plain", agent="MEME", evaluate_every=0, steps=400)


@pytest.fixture(scope="session")
def tasks_run(tmp_path_factory):
    """A finished run of two mazes with a memory for each; not to be changed."""
    return train(tmp_path_factory.mktemp("report") / "two-tasks", **TWO_TASKS)
