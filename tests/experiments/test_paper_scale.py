"""The paper's own experiments: what each command asks for, and that every kind of them runs when shrunk."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from fakes import dm_hard_8_server as fake

from experiments import paper_scale
from experiments.agent import frozen_agent
from experiments.paper_scale import EXPERIMENTS
from softcount import cli
from softcount.agents.meme.network import NetworkConfig
from softcount.agents.vmpo.network import NetworkConfig as VmpoNetworkConfig
from softcount.config import RunConfig, with_fields
from softcount.envs.families import EIGHT_GAMES, EIGHT_TASKS
from softcount.envs.make import parse_tasks
from softcount.presets import ATARI, DM_HARD_8
from softcount.representations.embedding import EmbeddingConfig
from softcount.representations.gated_transformer import GatedTransformerConfig
from softcount.roles.inference import Parameters
from softcount.runs.run import Run, make_loop
from softcount.tensors import to_arrays
from softcount.torsos import NfNetConfig

pytestmark = pytest.mark.timeout(120)
TORSO = NfNetConfig(initial_stride=8, blocks=(1, 1), channels=(4, 4), strides=(2, 2))


def shrink(config: RunConfig, **env_options) -> RunConfig:
    """The same kind of run with small networks, two environments and a memory of 20 atoms."""
    representation = replace(
        config.representation,
        embedding=EmbeddingConfig(torso=TORSO, dim=4),
        casm=replace(
            config.representation.casm,
            transformer=GatedTransformerConfig(width=8, num_heads=2, num_layers=1, hidden_sizes=(8,)),
        ),
        rnd=replace(config.representation.rnd, torso=TORSO, outputs=4, hidden_sizes=(8,)),
        byol=replace(config.representation.byol, state_size=8, hidden_sizes=(8,)),
    )
    return replace(
        config,
        env=config.env.replace("/all", "/baseball,dm-hard-8/drawbridge"),
        num_envs=2,
        evaluation_episodes=1,
        env_options=config.env_options | env_options,
        meme=replace(
            config.meme,
            network=NetworkConfig(torso=TORSO, core_size=8, head_size=8, num_mixtures=2),
            replay=replace(config.meme.replay, trace_length=6, period=3, capacity=8, min_traces=2),
            batch_size=2,
        ),
        vmpo=replace(
            config.vmpo,
            network=VmpoNetworkConfig(torso=TORSO, core_size=8, head_size=8),
            unroll_length=3,
            batch_size=2,
            target_update_period=2,
        ),
        recode=replace(
            config.recode, memory=replace(config.recode.memory, size=20, warmup_atoms=5, neighbours=3)
        ),
        representation=representation,
    )


def shapes():
    """One run of every kind: what is equal but for game, seed, budget or a constant is the same kind."""
    found = {}
    for experiment in EXPERIMENTS.values():
        changed = "+".join(sorted(set(experiment.changes) - {"steps"}))
        for config in experiment.runs():
            found.setdefault((config.env.split("/")[0], config.agent, changed or "plain"), config)
    return found


SHAPES = shapes()


@pytest.fixture
def port():
    with fake.LoopbackServer() as one, fake.LoopbackServer() as two:
        yield [one.port, two.port]


@pytest.mark.parametrize("shape", SHAPES, ids="-".join)
def test_every_kind_builds_steps_and_learns(shape, request, monkeypatch):
    config = SHAPES[shape]
    if shape[0] == "dm-hard-8":
        serve(request.getfixturevalue("port"), monkeypatch)
        config = shrink(config, width=32, height=24)
    elif shape[0] == "disco-maze":
        config = replace(config, num_envs=4, evaluation_episodes=1)  # small already
        config = with_fields(config, {"meme.batch_size": 4, "meme.replay.min_traces": 4})
    else:
        config = shrink(config, size=(42, 32))
    loop = make_loop(replace(config, overlap=False))
    before = copies(loop.roles.learner.parameters())
    while loop.num_updates < 2:
        loop.step()
    after = copies(loop.roles.learner.parameters())
    restored = make_loop(replace(config, overlap=False))
    state = loop.state_dict()
    restored.load_state_dict(state, {name: make() for name, make in loop.segments().items()})
    for one in (loop, restored):
        one.roles.actor.env.close()
    assert any(not np.array_equal(before.policy[name], after.policy[name]) for name in before.policy)
    learned = any(not np.array_equal(x, after.representation[n]) for n, x in before.representation.items())
    assert learned is (config.trainer.optimiser.learning_rate > 0)
    assert all(np.isfinite(x).all() for x in after.policy.values())


def copies(parameters):
    """Copies what learns; whole numbers are counters."""
    policy, representation = (to_arrays(part, copy=True) for part in parameters)
    return Parameters(policy, {name: x for name, x in representation.items() if x.dtype.kind == "f"})


def serve(ports, monkeypatch):
    """Lets copy i use its own server on the loopback."""
    from softcount.envs import dm_hard_8

    real = dm_hard_8.DmHard8

    def on_loopback(config):
        return real(replace(config, port=ports[config.port - 10_000]))

    monkeypatch.setattr(dm_hard_8, "DmHard8", on_loopback)


def test_each_command_line_gives_its_configuration(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(
        Run, "create", classmethod(lambda cls, folder, config: asked.append((folder, config)))
    )
    monkeypatch.setattr(cli, "_follow", lambda run, said: 0)
    monkeypatch.setattr(cli, "_with_allocator", lambda *_: None)
    for experiment in EXPERIMENTS.values():
        config = next(experiment.runs())
        words = experiment.command(config).split()
        if experiment.source is not None:
            continue
        assert words[:2] == ["softcount", "train"]
        assert cli.main(words[1:]) == 0
        folder, found = asked.pop()
        assert str(folder) == experiment.folder(config)
        assert found == config


def test_a_frozen_command_line_gives_its_configuration(monkeypatch):
    lender = EXPERIMENTS["atari_snapshot"]
    sources = {lender.folder(config): config for config in lender.runs()}
    monkeypatch.setattr(frozen_agent, "read_config", lambda folder: sources[str(folder)])
    asked = []

    def create(source, target, config):
        asked.append((str(target), config))
        return SimpleNamespace(train=lambda: iter(()), close=lambda: None)

    monkeypatch.setattr(frozen_agent, "create", create)
    for name, discount in (("atari_frozen", 0.999), ("atari_frozen_no_discount", 1.0)):
        experiment = EXPERIMENTS[name]
        for config in experiment.runs():
            words = experiment.command(config).split()
            assert words[:3] == ["python", "-m", frozen_agent.__name__]
            monkeypatch.setattr(sys, "argv", words[2:])
            frozen_agent.main()
            folder, found = asked.pop()
            assert folder == experiment.folder(config)
            assert found.recode.memory.count_discount == discount
            assert found.trainer.optimiser.learning_rate == 0.0
            assert found == replace(config, trainer=replace(config.trainer, acting="latest"))


def test_every_replay_can_fill_up_to_where_learning_starts():
    """White noise is not compressible: learning must start before the bytes are used up."""
    for experiment in EXPERIMENTS.values():
        for config in experiment.runs():
            if config.env.startswith("noisy-atari"):
                row = 2 * 210 * 160
            else:
                row = {"atari": 210 * 160, "dm-hard-8": 96 * 72 * 3, "disco-maze": 21 * 21}[
                    config.env.split("/")[0]
                ]
            replay = config.meme.replay
            assert 1.2 * replay.min_traces * replay.period * row < replay.max_bytes


def test_the_papers_games_tasks_agents_and_seeds_are_all_there():
    atari, others, hard = (EXPERIMENTS[name] for name in ("atari", "atari_baselines", "dm_hard_8"))
    assert len(list(atari.runs())) == len(EIGHT_GAMES) * 6
    assert len(list(others.runs())) == len(EIGHT_GAMES) * 3 * 6
    assert len(list(hard.runs())) == len(EIGHT_TASKS) * 4 * 3
    assert {c.agent for c in atari.runs()} == {"MEME-RECODE-AP"}
    assert {c.agent for c in others.runs()} == {"MEME-NGU-AP", "MEME-EMM-AP", "MEME-RND"}
    assert next(atari.runs()) == replace(ATARI, agent="MEME-RECODE-AP", env="atari/gravitar", seed=0)
    assert next(hard.runs()).recode.memory == DM_HARD_8.recode.memory
    noisy = next(EXPERIMENTS["noisy_montezuma"].runs())
    assert noisy.env == "noisy-atari/montezuma_revenge"
    assert noisy.recode.memory.size == 50_000


def test_many_tasks_are_one_run_with_continuous_actions():
    runs = list(EXPERIMENTS["dm_hard_8_multi_task"].runs())
    assert {c.agent for c in runs} == {"VMPO-RECODE-AP", "VMPO-BYOL-Explore"}
    assert all(c.env_options == {"actions": "continuous"} for c in runs)
    assert len(parse_tasks(runs[0].env)) == len(EIGHT_TASKS)
    assert runs[0].num_envs % runs[0].vmpo.batch_size == 0
    assert runs[0].vmpo.batch_size % len(EIGHT_TASKS) == 0


def test_ablations_change_one_thing():
    assert next(EXPERIMENTS["atari_no_discount"].runs()).recode.memory.count_discount == 1.0
    assert next(EXPERIMENTS["atari_removal_smallest"].runs()).recode.memory.removal == "smallest"
    assert next(EXPERIMENTS["disco_maze"].runs()).env_options["size"] == 21


def test_a_figure_finds_its_experiments_by_number():
    lines = paper_scale.commands_of("Figs. 7, 20, 22")
    assert sum(line.startswith("#") for line in lines) == 4
    assert all("not run" in line for line in lines if line.startswith("#"))
    assert len([line for line in lines if line.startswith("softcount train")]) == 96 + 24 + 48 + 48
    assert paper_scale.commands_of("§3, Eq. 2 (no figure)") == []


def test_a_frozen_embedding_is_the_sources_and_stays_so(tmp_path):
    from launch.test_local import TINY

    small = replace(TINY, steps=60, report_every=30, evaluate_every=0)
    source = Run.create(tmp_path / "source", small)
    list(source.train())
    acting = source.loop.roles.inference.state_dict()["representation"]
    source.close()
    config = frozen_agent.frozen_config(small, count_discount=1.0)
    run = frozen_agent.create(tmp_path / "source", tmp_path / "target", config)
    list(run.train())
    frozen = run.loop.roles.inference.state_dict()["representation"]
    assert run.loop.num_updates > 0
    (memory,) = run.loop.roles.memory.bonus.memories().values()
    assert memory.config.count_discount == 1.0
    run.close()
    for name in (name for name, value in acting.items() if value.dtype.kind == "f"):
        np.testing.assert_array_equal(acting[name], frozen[name])
