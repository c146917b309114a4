"""Several tasks in one run: through the loop, a memory for each, reports for each, resumed exactly."""

import json
from dataclasses import replace

import numpy as np
import pytest
from launch.test_local import TINY, assert_same, everything

from softcount import store
from softcount.envs.tasks import TaskVector
from softcount.roles.actor import Episode
from softcount.roles.evaluator import Evaluation
from softcount.runs.describe import describe_scores
from softcount.runs.folder import METRICS
from softcount.runs.run import Run, make_loop

MAZES = "disco-maze:layout=1,disco-maze:layout=2"
CONFIG = replace(
    TINY,
    env=MAZES,
    env_options={"size": 7, "observation": "palette"},
    num_envs=4,
    evaluation_episodes=2,
    memory_per_task=True,
    recode=replace(TINY.recode, reembed_every=3),
    overlap=False,
)


@pytest.mark.parametrize("memory_per_task", [True, False])
def test_each_row_carries_its_task_and_meets_its_own_memory(memory_per_task):
    loop = make_loop(replace(CONFIG, memory_per_task=memory_per_task))
    for _ in range(50):
        loop.step()
    assert loop.num_updates > 5
    assert isinstance(loop.roles.actor.env, TaskVector)
    sample = loop.roles.replay.sample()
    tasks = sample.sequence.steps.extras["task"]
    assert (tasks == tasks[0]).all()
    assert set(tasks.ravel().tolist()) <= {0, 1}
    memories = loop.roles.memory.bonus.memories()
    if memory_per_task:
        assert list(memories) == ["disco-maze:layout=1", "disco-maze:layout=2"]
        seen = [memory.num_observed for memory in memories.values()]
        assert min(seen) > 20
    else:
        assert list(memories) == [""]


def test_a_restored_run_of_two_tasks_continues_as_if_nothing_had_happened(tmp_path):
    loop = make_loop(CONFIG)
    for _ in range(35):
        loop.step()
    state = loop.state_dict()
    for part in state:
        store.save(tmp_path / part, state[part], kind=part)
    twin = make_loop(CONFIG)
    twin.load_state_dict(
        {part: store.load(tmp_path / part, kind=part) for part in state},
        {name: make() for name, make in loop.segments().items()},
    )
    for _ in range(25):
        loop.step()
        twin.step()
    assert_same(everything(loop), everything(twin))


def test_a_run_reports_every_task_by_its_name(tmp_path):
    config = replace(CONFIG, steps=400, report_every=200, evaluate_every=200, checkpoint_seconds=1e9)
    run = Run.create(tmp_path / "run", config)
    list(run.train())
    run.close()
    rows = [json.loads(line) for line in (tmp_path / "run" / METRICS).read_text().splitlines()]
    row = rows[-1]
    names = ["disco-maze:layout=1", "disco-maze:layout=2"]
    for measure in ("charts/episodes", "coverage/places", "eval/return", "eval/length"):
        parts = [row[f"{measure}/{name}"] for name in names]
        if measure in ("charts/episodes", "coverage/places"):
            assert sum(parts) == row[measure] > 0
        else:
            assert np.mean(parts) == pytest.approx(row[measure])
    assert row["intrinsic/atoms"] == pytest.approx(
        np.mean([row[f"intrinsic/atoms/{name}"] for name in names])
    )


def evaluation_of(*returns):
    """Episodes of task 0, 1, … with these returns."""
    episodes = [Episode(x, 0.0, 9, task, 0) for task, own in enumerate(returns) for x in own]
    return Evaluation(episodes, [], [], set())


def test_scores_are_capped_task_by_task_and_then_averaged():
    tasks = "dm-hard-8/push_blocks", "atari/montezuma_revenge", "atari/pitfall"
    evaluation = evaluation_of([8.4, 0.0], [4753.3, 99_999.0], [-229.4, -9_999.0])
    assert describe_scores(evaluation, tasks) == {
        "eval/capped_score/dm-hard-8/push_blocks": 0.5,
        "eval/capped_score/atari/montezuma_revenge": 1.0,  # of the mean return: ten times a person's
        "eval/capped_score/atari/pitfall": 0.0,  # below a random policy's
        "eval/capped_score": 0.5,
    }


def test_there_is_no_mean_score_where_people_played_only_some_of_the_tasks():
    tasks = "dm-hard-8/push_blocks", "eight-rooms/push_blocks"
    scores = describe_scores(evaluation_of([4.2], [8.4]), tasks)
    assert scores == {"eval/capped_score/dm-hard-8/push_blocks": 0.5}
    assert describe_scores(evaluation_of([1.0]), ("disco-maze",)) == {}
    assert describe_scores(evaluation_of([4.2]), tasks[:1]) == {"eval/capped_score": 0.5}


@pytest.mark.parametrize("clip_rewards", [False, True])
def test_an_evaluation_reports_scores_unless_rewards_are_signs(tmp_path, monkeypatch, clip_rewards):
    run = Run.create(tmp_path / "run", CONFIG)
    run.config = replace(CONFIG, env_options={"clip_rewards": clip_rewards})
    run._task_names = "dm-hard-8/push_blocks", "dm-hard-8/baseball"
    monkeypatch.setattr(run, "evaluate", lambda: evaluation_of([4.2], [7.9]))
    metrics = run._describe_evaluation()
    run.close()
    assert metrics["eval/return/dm-hard-8/baseball"] == 7.9
    assert metrics.get("eval/capped_score") == (None if clip_rewards else 0.75)
