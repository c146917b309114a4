"""Named configurations: the paper's tables, and one that suits a laptop.

`atari` and `dm-hard-8` are the paper's two tables of hyper-parameters, completed by the
values of MEME where the paper gives none. `laptop` is what worked on small worlds with
two CPU cores; `docs/agent/small_mazes.md` has the evidence for each departure from the paper.
"""

from __future__ import annotations

from dataclasses import replace

from softcount.agents.meme.loss import LossConfig
from softcount.agents.meme.network import NetworkConfig
from softcount.agents.popart import PopArtConfig
from softcount.agents.vmpo.agent import VmpoConfig
from softcount.agents.vmpo.loss import LossConfig as VmpoLossConfig
from softcount.agents.vmpo.network import NetworkConfig as VmpoNetworkConfig
from softcount.bonuses.normalise import NormaliserConfig
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.bonuses.surprise import SurpriseConfig
from softcount.config import MemeRunConfig, RunConfig
from softcount.fitting import SMALL_DQN, Spaces, fit
from softcount.memory import RecodeConfig
from softcount.optimiser import OptimiserConfig
from softcount.replay.config import ReplayConfig
from softcount.representations.action_prediction import ActionPredictionConfig
from softcount.representations.embedding import EmbeddingConfig
from softcount.representations.make import GRID, GRID_TRAINER, RepresentationConfig
from softcount.representations.rnd import NGU_RND, RndConfig
from softcount.representations.trainer import TrainerConfig
from softcount.taxonomy import Recipe, parse
from softcount.torsos import GridConfig, MlpConfig, SmallConfig

ATARI = RunConfig(
    env="atari/montezuma_revenge",
    num_envs=64,
    steps=250_000_000,
    meme=MemeRunConfig(replay=ReplayConfig(max_bytes=64 * 2**30)),
    representation=RepresentationConfig(embedding=EmbeddingConfig(torso="nfnet")),
    trainer=TrainerConfig(optimiser=OptimiserConfig(learning_rate=6e-4, weight_decay=0.05)),
)
"""The paper's Atari table; fields not named here have their values as defaults. Decision 40: the encoder of
the representation is the agent's torso."""

ATARI_LETTER = replace(
    ATARI, recode=replace(ATARI.recode, memory=replace(ATARI.recode.memory, embeddings_per_step=1))
)
"""The same with one discount per embedding, as Algorithm 1 prints it: a memory of seconds. Decision 10."""

DM_HARD_8 = RunConfig(
    agent="MEME-RECODE-CASM",
    env="dm-hard-8/baseball",
    num_envs=64,
    steps=10_000_000_000,
    meme=MemeRunConfig(
        network=NetworkConfig(torso="nfnet-dm-hard-8"),
        loss=LossConfig(beta_max=0.1, discount_max=0.997),
        optimiser=OptimiserConfig(learning_rate=1e-4, weight_decay=0.1),
        replay=ReplayConfig(trace_length=80, period=40, capacity=5000, replay_ratio=2.0, min_traces=1000),
        batch_size=128,
    ),
    recode=RecodeBonusConfig(
        memory=RecodeConfig(size=200_000, count_discount=0.997, insertion_probability=0.2)
    ),
    representation=RepresentationConfig(embedding=EmbeddingConfig(torso="nfnet-dm-hard-8")),
    trainer=TrainerConfig(optimiser=OptimiserConfig(learning_rate=3e-4, weight_decay=0.1)),
)
"""The paper's DM-HARD-8 table; its CASM table is the default of `CasmConfig`."""

LAPTOP = RunConfig(
    env="disco-maze",
    env_options={"size": 11, "layout": 0, "observation": "palette"},
    num_envs=64,
    steps=1_000_000,
    meme=MemeRunConfig(
        network=NetworkConfig(torso=GridConfig(), core="none", core_size=128, head_size=128, num_mixtures=6),
        loss=LossConfig(discount_max=0.99, discount_min=0.85, priority_of="all"),
        optimiser=OptimiserConfig(learning_rate=1e-3, weight_decay=0.0),
        act_on="split",
        target_update_period=25,
        epsilon_base=0.06,
        epsilon_power=0.64,
        evaluation_epsilon=0.0,
        replay=ReplayConfig(
            trace_length=16,
            period=8,
            capacity=20_000,
            replay_ratio=4.0,
            min_traces=100,
            newest=8,
            max_bytes=2**30,
        ),
        batch_size=16,
        relabel=True,
    ),
    recode=RecodeBonusConfig(
        memory=RecodeConfig(
            size=400,
            neighbours=10,
            count_discount=0.9999,
            warmup_atoms=400,
            kernel_epsilon=0.1,
            reward_constant=1.0,
        ),
        normaliser=NormaliserConfig(kind="none"),
        reembed_every=20,
    ),
    representation=replace(
        GRID, embedding=EmbeddingConfig(torso=GridConfig(channels=2), dim=16, layer_norm=True)
    ),
    trainer=replace(GRID_TRAINER, optimiser=replace(GRID_TRAINER.optimiser, learning_rate=2e-3)),
    terminal_observations="skipped",
    evaluation_episodes=20,
    evaluate_every=50_000,
    report_every=10_000,
)
"""Small mazes on two cores (`docs/agent/small_mazes.md`). |M| should be about eight times their places."""

LAPTOP_21 = replace(
    LAPTOP,
    env_options={"size": 21, "layout": 0, "observation": "palette"},
    steps=5_000_000,
    meme=replace(LAPTOP.meme, loss=replace(LAPTOP.meme.loss, beta_max=0.3)),
    recode=replace(
        LAPTOP.recode, memory=replace(LAPTOP.recode.memory, size=1600, neighbours=5, warmup_atoms=1600)
    ),
    evaluate_every=250_000,
    report_every=25_000,
)
"""The paper's 21×21 maze on two cores: the same agent, a memory for 199 places, some of which embed near
each other: k is smaller, and with it the bandwidth (decision 145), and the goal is worth more than
wandering about (147)."""

LAPTOP_ATARI = replace(
    LAPTOP,
    agent="MEME-RECODE-FRAME",
    env="atari/montezuma_revenge",
    env_options={
        "size": (42, 40),
        "stack": 2,
        "actions": ("NOOP", "FIRE", "UP", "RIGHT", "LEFT", "DOWN", "RIGHTFIRE", "LEFTFIRE"),
        "skip_deaths": True,
        "clip_rewards": True,
        "max_steps": 2000,
        "limit_is_terminal": False,
    },
    meme=replace(
        LAPTOP.meme,
        network=NetworkConfig(torso=SMALL_DQN, core="none", core_size=128, head_size=128, num_mixtures=4),
        loss=replace(LAPTOP.meme.loss, beta_max=0.05, discount_min=0.97),
        optimiser=replace(LAPTOP.meme.optimiser, learning_rate=5e-4),
        replay=replace(LAPTOP.meme.replay, capacity=60_000, replay_ratio=8.0, min_traces=200),
        evaluation_epsilon=0.01,
    ),
    recode=replace(
        LAPTOP.recode,
        memory=replace(LAPTOP.recode.memory, size=5000, neighbours=5, warmup_atoms=2000, kernel_epsilon=1.0),
        normaliser=NormaliserConfig(kind="prioritised", step=1e-3),
    ),
    representation=RepresentationConfig(
        embedding=EmbeddingConfig(torso=SMALL_DQN, dim=32, layer_norm=True),
        action_prediction=ActionPredictionConfig(by="cells"),
        rnd=RndConfig(torso=SMALL_DQN, outputs=128, hidden_sizes=(128,)),
        newest_channels=1,
    ),
    trainer=replace(LAPTOP.trainer, schedule="harmonic", slow_power=8.0, slow_step=5e-4),
    evaluation_episodes=10,
    evaluate_every=250_000,
)
"""Montezuma's Revenge on one core; each field is explained in `docs/atari.md`."""

OTHER_BETA = 0.2
"""β there of bonuses whose pay is not lowered by its mean."""

VMPO_DM_HARD_8 = replace(
    DM_HARD_8,
    agent="VMPO-RECODE-AP",
    env="dm-hard-8/all",
    env_options={"actions": "continuous"},
    num_envs=128,
    vmpo=VmpoConfig(loss=VmpoLossConfig(discount=0.997)),
)
"""The paper's multi-task experiment, as far as it is described; the rest is V-MPO's. Decision 246."""

VMPO_LAPTOP = replace(
    LAPTOP,
    agent="VMPO-RECODE-AP",
    num_envs=32,
    vmpo=VmpoConfig(
        network=VmpoNetworkConfig(torso="small", core="none", core_size=64, head_size=64),
        loss=VmpoLossConfig(
            discount=0.98,
            intrinsic_weight=0.3,
            temperature_limit=0.3,
            kl_limit=0.01,
            mean_limit=0.05,
            cov_limit=1e-4,
        ),
        popart=PopArtConfig(step=1e-3),
        optimiser=OptimiserConfig(learning_rate=3e-3, weight_decay=0.0),
        dual_learning_rate=0.1,
        target_update_period=8,
        unroll_length=20,
        batch_size=4,
        strict=True,
    ),
    representation=replace(
        LAPTOP.representation,
        embedding=EmbeddingConfig(
            torso=SmallConfig(images=GridConfig(channels=2), vectors=MlpConfig(hidden_sizes=(64, 64))),
            dim=16,
            layer_norm=True,
        ),
        rnd=replace(LAPTOP.representation.rnd, torso="small"),
    ),
)
"""V-MPO in small worlds on two cores: many small batches, fast multipliers. Decision 245."""

PRESETS = {
    "laptop": LAPTOP,
    "laptop-21": LAPTOP_21,
    "laptop-atari": LAPTOP_ATARI,
    "atari": ATARI,
    "atari-letter": ATARI_LETTER,
    "dm-hard-8": DM_HARD_8,
    "vmpo-laptop": VMPO_LAPTOP,
    "vmpo-dm-hard-8": VMPO_DM_HARD_8,
}


VMPO_FOR = ((LAPTOP, VMPO_LAPTOP), (DM_HARD_8, VMPO_DM_HARD_8))
"""V-MPO's own preset where one of MEME's is asked for."""


def suited(preset: RunConfig, agent: str, spaces: Spaces | None = None) -> RunConfig:
    """Returns a preset as it suits an agent, and the spaces of an environment of one's own (`fitting`).

    What was chosen for counts stays with counts.

    Episodic bonuses are not relabelled: they depend on the episode. A predictor learns as in its paper, at
    a constant rate and without a slow copy, which are there to let an embedding settle. At the paper's
    scale NGU's predictor has NGU's sizes. V-MPO has presets of its own for the same worlds. Atoms need not
    follow FRAME, which never changes. On a laptop's Atari rivals are paid as RECODE is, where they can be.

    >>> suited(LAPTOP, "MEME-RECODE-AP") == LAPTOP, suited(LAPTOP, "MEME-NGU-AP").meme.relabel
    (True, False)
    """
    recipe = parse(agent)
    if recipe.agent == "vmpo":
        preset = next((own for other, own in VMPO_FOR if preset is other), preset)
    if spaces is not None:
        return fit(suited(preset, agent), spaces)
    if preset is LAPTOP_ATARI:
        preset = _laptop_atari_for(recipe)
    config = replace(preset, agent=agent)
    if recipe.representation == "frame":
        config = replace(config, recode=replace(preset.recode, reembed_every=0))
    if recipe.bonus in ("recode", "place_count", "none"):
        return config
    relabel = preset.meme.relabel and recipe.bonus == "surprise"
    config = replace(config, meme=replace(preset.meme, relabel=relabel))
    if recipe.bonus == "ngu" and preset.representation.rnd == RndConfig():
        config = replace(config, representation=replace(preset.representation, rnd=NGU_RND))
    if recipe.bonus == "episodic" or preset.trainer.schedule == "constant":
        return config
    plain = TrainerConfig()
    decay = preset.trainer.optimiser.weight_decay
    return replace(config, trainer=replace(plain, optimiser=replace(plain.optimiser, weight_decay=decay)))


def _laptop_atari_for(recipe: Recipe) -> RunConfig:
    """`laptop-atari` for a bonus: paid above its mean as RECODE is, or with a β of its own. Decision 566.

    BYOL-Explore is paid so by itself. True counts fade, and NGU's product has a unit of its own.
    """
    preset, above_mean = LAPTOP_ATARI, LAPTOP_ATARI.recode.normaliser
    if recipe.bonus == "recode" or (recipe.bonus, recipe.representation) == ("surprise", "byol"):
        return preset
    if recipe.bonus == "surprise":
        return replace(preset, surprise=SurpriseConfig(normaliser=above_mean))
    if recipe.bonus == "episodic":
        return replace(preset, episodic=replace(preset.episodic, normaliser=above_mean))
    loss = replace(preset.meme.loss, beta_max=OTHER_BETA)
    return replace(preset, meme=replace(preset.meme, loss=loss))
