"""Small V-MPO runs for tests: a maze with discrete actions, a square with continuous ones."""

from dataclasses import replace

from launch.test_local import TINY

from softcount.agents.popart import PopArtConfig
from softcount.agents.vmpo.agent import VmpoConfig
from softcount.agents.vmpo.loss import LossConfig
from softcount.agents.vmpo.network import NetworkConfig
from softcount.optimiser import OptimiserConfig
from softcount.representations.embedding import EmbeddingConfig
from softcount.torsos import MlpConfig

MLP = MlpConfig(hidden_sizes=(8,))
UNROLL, NUM_ENVS = 6, 4
MAZE = replace(
    TINY,
    agent="VMPO-RECODE-AP",
    num_envs=NUM_ENVS,
    recode=replace(TINY.recode, reembed_every=0),
    env_options={"size": 7, "layout": 1, "max_steps": 9},
    vmpo=VmpoConfig(
        network=NetworkConfig(torso=MLP, core="lstm", core_size=8, head_size=8),
        loss=LossConfig(discount=0.95, intrinsic_weight=0.5, kl_limit=0.01),
        popart=PopArtConfig(step=0.01),
        optimiser=OptimiserConfig(learning_rate=1e-2, weight_decay=0.0),
        dual_learning_rate=0.05,
        target_update_period=4,
        unroll_length=UNROLL,
        batch_size=2,
        strict=True,
    ),
    representation=replace(
        TINY.representation,
        embedding=EmbeddingConfig(torso=MLP, dim=4, layer_norm=True),
        byol=replace(TINY.representation.byol, horizon=3, state_size=8),
        rnd=replace(TINY.representation.rnd, torso=MLP),
    ),
)
POINT = replace(MAZE, env="point-maze/s", env_options={"max_steps": 9})
CONFIGS = {"discrete": MAZE, "continuous": POINT}
