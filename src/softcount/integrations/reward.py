"""One object that puts any bonus of the paper into any training loop.

    r = bonus.step(obs, actions, next_obs, terminated, truncated)

Each call embeds what arrived, scores it, remembers it, and trains the representation on
its own schedule from its own short history. The environments are never touched. What
belongs to which episode follows from the flags and from how the environments restart:

    autoreset_mode   after an episode's end, the next call is given …
    next_step        obs = the final observation again, next_obs = the new episode's first one,
                     the action was ignored (Gymnasium's default)
    same_step        obs = the new episode's first observation; the call before had the true
                     final observation as next_obs (SB3, TorchRL, Gymnasium's same-step and
                     disabled modes, hand-written loops)

First observations are absorbed and paid 0; a step that only restarts is paid 0. Until the
representation has learnt once, nothing is paid and nothing remembered: what an untrained
network says of observations would only be in the way (Decision 82).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch

from softcount.bonuses.make import Place, make_bonus
from softcount.bonuses.terminal import observe
from softcount.integrations.checks import Inputs
from softcount.integrations.config import IntrinsicRewardConfig
from softcount.integrations.critic import IntrinsicCritic
from softcount.integrations.defaults import choose_representation, choose_trainer
from softcount.integrations.history import History
from softcount.integrations.notes import Notes
from softcount.integrations.saving import Saved
from softcount.integrations.schedules import Fading, Schedule, as_schedule
from softcount.representations.features import Representation
from softcount.representations.make import make_representation
from softcount.representations.trainer import RepresentationTrainer
from softcount.roles.memory_server import MemoryServer
from softcount.taxonomy import parse
from softcount.tensors import to_arrays, to_tensors
from softcount.types import (
    Array,
    Features,
    Sequence,
    State,
    leaves_of,
    load_rng,
    map_arrays,
    no_action,
    rng_state,
)

AutoresetMode = Literal["next_step", "same_step"]


class IntrinsicReward(Saved):
    """The bonus of a name of the paper's taxonomy, for a loop of one's own.

    `encoder` is a torso of `softcount.torsos` by name or a module of your own that turns
    observations `[N, ...]` into features, or a whole representation (`Frozen`, `Function`, …),
    which then takes the place of the one in the name.

    >>> from gymnasium.spaces import Box, Discrete
    >>> bonus = IntrinsicReward("RECODE-AP", Box(-1, 1, (3,)), Discrete(2), num_envs=2, seed=0)
    >>> obs, done = np.zeros((2, 3), np.float32), np.zeros(2, bool)
    >>> bonus.step(obs, np.array([0, 1]), obs + 0.5, terminated=done, truncated=done).shape
    (2,)
    """

    def __init__(
        self,
        name: str,
        observation_space: Any,
        action_space: Any,
        *,
        num_envs: int,
        seed: int = 0,
        device: str = "cpu",
        weight: float | Schedule = 1.0,
        autoreset_mode: AutoresetMode = "next_step",
        encoder: Any = None,
        config: IntrinsicRewardConfig | None = None,
    ) -> None:
        self._arguments = dict(locals())
        del self._arguments["self"]
        self.recipe = parse(name)
        self.config = cfg = config or IntrinsicRewardConfig()
        self.inputs = Inputs(observation_space, action_space, num_envs)
        self.num_envs, self.device = num_envs, device
        self.weight = as_schedule(weight)
        if autoreset_mode not in ("next_step", "same_step"):
            raise ValueError(f"autoreset_mode is {autoreset_mode!r}; expected 'next_step' or 'same_step'")
        self.autoreset_mode = autoreset_mode
        if self.recipe.bonus in ("none", "place_count"):
            raise ValueError(
                f"{name!r} pays no bonus from observations; expected a name like 'RECODE-AP' or 'RND'"
            )
        spec = self.inputs.observation_spec
        is_whole = isinstance(encoder, Representation)
        kind = self.recipe.representation_kind
        settings = cfg.representation or choose_representation(spec, kind, None if is_whole else encoder)
        representation = (
            encoder
            if isinstance(encoder, Representation)
            else make_representation(kind, spec, self.inputs.action_spec, settings, seed=seed)
        ).to(device)
        how = cfg.trainer or choose_trainer(kind)
        self.trainer = RepresentationTrainer(representation, how)
        self._acting = self.trainer.acting_copy()
        bonus = make_bonus(
            self.recipe.bonus,
            cfg.bonus_config(self.recipe.representation),
            Place(
                dim=representation.dim,
                representation=self.recipe.representation,
                num_envs=num_envs,
                seed=seed,
            ),
        )
        assert bonus is not None
        self.bonus = bonus
        self._server = MemoryServer(bonus, cfg.terminal_observations)
        capacity = max(cfg.history_size // num_envs, cfg.sequence_length, cfg.window)
        self.history = History(self.inputs.observation_spec, self.inputs.action_spec, num_envs, capacity)
        self.num_steps = 0
        self.num_rewards = 0  # steps that the game paid for
        self._rng = np.random.default_rng(seed)
        self._state = to_tensors(self._acting.initial_state(num_envs), device)
        self._is_recurrent = bool(leaves_of(self._state))
        self._is_starting = np.ones(num_envs, bool)  # the next obs begins an episode
        self._is_dead = np.zeros(num_envs, bool)  # the next step only restarts
        self._metrics: dict[str, float] = {}
        self.critic: IntrinsicCritic | None = None  # values of the bonus, where an adapter adds them
        self._notes = Notes(self.recipe.name, self._num_steps_unpaid())

    def step(
        self,
        obs: Any,
        actions: Any,
        next_obs: Any,
        terminated: Any,
        truncated: Any,
        env_ids: Any = None,
    ) -> Array:
        """Returns the weighted bonus of each transition, float32 `(num_envs,)`, and learns from it.

        With `env_ids` only these environments have stepped, and all else has their number of rows.
        """
        num_before = self.num_steps
        rewards = self.take_in(obs, actions, next_obs, terminated, truncated, env_ids)
        for _ in range(self.config.num_updates_due(num_before, self.num_steps)):
            self.learn()
        return rewards

    @property
    def current_weight(self) -> float:
        """What the bonus is multiplied by now."""
        if isinstance(self.weight, Fading):
            return self.weight.value * self.share_left
        return self.weight(self.num_steps)

    @property
    def share_left(self) -> float:
        """What the game's rewards have left of a `Fading` weight, from 1 down; 1 of others."""
        return self.weight.share_after(self.num_rewards) if isinstance(self.weight, Fading) else 1.0

    def see_rewards(self, rewards: Any) -> None:
        """Counts the steps that the game paid for; a `Fading` weight falls by them."""
        self.num_rewards += int(np.count_nonzero(rewards))

    @property
    def is_paying(self) -> bool:
        """Whether visits are paid yet: before, the representation learns and the memory fills."""
        return self._can_embed and self.bonus.is_paying

    def _num_steps_unpaid(self) -> int:
        """About how many steps pass before anything is paid."""
        to_learn = 0 if self.trainer.optimiser is None else self.config.first_update
        return to_learn + sum(int(memory.config.num_warmup) for memory in self.bonus.memories().values())

    @property
    def _can_embed(self) -> bool:
        """Whether the representation has learnt at least once, or has nothing to learn."""
        return self.trainer.optimiser is None or self.trainer.num_updates > 0

    def reset(self, mask: Any = None) -> None:
        """Says that the environments (or those of a mask) were reset by hand: their next obs is a FIRST."""
        rows = np.ones(self.num_envs, bool) if mask is None else self.inputs.flags(mask, "mask")
        self._is_starting |= rows
        self._is_dead &= ~rows

    def resume(self, obs: Any, env_ids: Any = None) -> None:
        """Says which observations a loop goes on with, after `load` or a break.

        Environments whose observation is not what arrived last were reset: theirs begins an episode.
        """
        ids = self.inputs.env_ids(env_ids)
        given = self.inputs.observation(obs, "obs", len(ids))
        differs = self.history.num_rows[ids] == 0
        for one, two in zip(leaves_of(self.history.newest(ids)), leaves_of(given), strict=True):
            differs |= (one != two).reshape(len(ids), -1).any(1)
        self.reset(np.isin(np.arange(self.num_envs), ids[differs]))

    def score(self, obs: Any, env_ids: Any = None) -> Array:
        """Returns what arriving at observations `(B, ...)` would be paid now; nothing changes.

        Episodic bonuses compare with the running episodes of `env_ids` (default: row i with environment i).
        """
        if self.bonus.paid_in == "learning":
            raise ValueError(
                f"{self.recipe.name} is surprised by sequences; it cannot score single observations"
            )
        observation = self.inputs.observation(obs, "obs")
        num = len(next(iter(observation.values())) if isinstance(observation, Mapping) else observation)
        is_first, none = np.zeros(num, bool), no_action(self.inputs.action_spec, num)
        fresh = to_tensors(self._acting.initial_state(num), self.device)
        features, _ = self._represent(observation, none, is_first, fresh)
        if not self.bonus.can_read(features):
            return np.zeros(num, np.float32)
        ids = None if env_ids is None else np.asarray(env_ids)
        return self.bonus.score(features, ids) * np.float32(self.current_weight)

    def learn(self, sequence: Sequence | None = None) -> dict[str, float]:
        """Updates the representation once, from the history or a sequence `[T, B, ...]` of your own."""
        if sequence is None:
            sequence = self.history.sample(self._rng, self.config.batch_size, self.config.sequence_length)
        if sequence is None:
            return {}
        if self.trainer.needs_statistics:
            for observation in self.history.observations():
                self.trainer.learn_statistics(observation)
        metrics = self.trainer.update(sequence)
        if self._acting is not self.trainer.representation:
            self._acting.load_state_dict(self.trainer.acting_state())
        self._metrics.update({f"representation/{key}": value for key, value in metrics.items()})
        every = self.config.reembed_every
        if every and self.trainer.num_updates % every == 0:
            self._move_atoms()
        return metrics

    def _move_atoms(self) -> None:
        """Puts the memory's atoms where the observations that founded them are embedded now."""
        num = self._server.num_founded()
        if num:
            observation = self._server.founding_observations(0, num)
            none = no_action(self.inputs.action_spec, num)
            state = to_tensors(self._acting.initial_state(num), self.device)
            features, _ = self._represent(observation, none, np.ones(num, bool), state)
            self._server.move_atoms(features)

    def metrics(self) -> dict[str, float]:
        """Plain numbers to log: the bonus, its memory, the representation's last update."""
        own = {
            "weight": self.current_weight,
            "steps": float(self.num_steps),
            "is_paying": float(self.is_paying),
        }
        return {
            **own,
            **{f"bonus/{key}": value for key, value in self.bonus.metrics().items()},
            **self._metrics,
        }

    def state_dict(self) -> State:
        """Everything needed to continue exactly: bonus, representation, history, generators, flags."""
        return {
            "num_steps": self.num_steps,
            "num_rewards": self.num_rewards,
            "bonus": self.bonus.state_dict(),
            "trainer": self.trainer.state_dict(),
            "history": self.history.state_dict(),
            "recurrent": leaves_of(map_arrays(lambda x: x.detach().cpu().numpy(), self._state)),
            "is_starting": self._is_starting.copy(),
            "is_dead": self._is_dead.copy(),
            "generator": rng_state(self._rng),
            "metrics": [[name, value] for name, value in self._metrics.items()],
            "critic": None if self.critic is None else self.critic.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        """Continues where `state_dict` was called, if built with the same arguments."""
        self.bonus.load_state_dict(state["bonus"])
        self.trainer.load_state_dict(state["trainer"])
        if self._acting is not self.trainer.representation:
            self._acting.load_state_dict(self.trainer.acting_state())
        self.history.load_state_dict(state["history"])
        leaves = iter(state["recurrent"])
        self._state = map_arrays(
            lambda _: torch.as_tensor(np.array(next(leaves)), device=self.device), self._state
        )
        self.num_steps = int(state["num_steps"])
        self.num_rewards = int(state.get("num_rewards", 0))  # not kept by earlier versions
        self._is_starting = np.array(state["is_starting"], bool)
        self._is_dead = np.array(state["is_dead"], bool)
        load_rng(self._rng, state["generator"])
        self._metrics = dict(state.get("metrics", []))
        if self.critic is not None and state.get("critic") is not None:
            self.critic.load_state_dict(state["critic"])

    def take_in(
        self,
        obs: Any,
        actions: Any,
        next_obs: Any,
        terminated: Any,
        truncated: Any,
        env_ids: Any = None,
    ) -> Array:
        """Checks one step of all environments, or of some; advances their streams; returns what is paid."""
        ids = self.inputs.env_ids(env_ids)
        before = self.inputs.observation(obs, "obs", len(ids))
        arrived = self.inputs.observation(next_obs, "next_obs", len(ids))
        action = self.inputs.actions(actions, len(ids))
        is_terminal = self.inputs.flags(terminated, "terminated", len(ids))
        is_last = is_terminal | self.inputs.flags(truncated, "truncated", len(ids))
        dead, starting = self._is_dead[ids], self._is_starting[ids]
        if (dead & is_last).any():
            raise ValueError(
                f"environment {ids[(dead & is_last).argmax()]} ended twice in a row, but with "
                "autoreset_mode='next_step' the step after an end only restarts; pass "
                "autoreset_mode='same_step' if yours restart at once"
            )
        self._check_follows(before, ids)
        if starting.any():
            rows = np.flatnonzero(starting)
            nothing = np.zeros(len(rows), bool)
            none = np.zeros_like(action[rows])
            self._arrive(ids[rows], _rows(before, rows), none, ~nothing, nothing, nothing)
        came_by = np.where(dead.reshape(-1, *[1] * (action.ndim - 1)), 0, action).astype(action.dtype)
        rewards = self._arrive(ids, arrived, came_by, dead, is_last, is_terminal)
        rewards = rewards * np.float32(self.current_weight)
        self.num_steps += len(ids)
        self._notes(self.num_steps, self.is_paying)
        is_next_step = self.autoreset_mode == "next_step"
        self._is_dead[ids] = is_last & is_next_step
        self._is_starting[ids] = is_last & (not is_next_step)
        return rewards

    def _check_follows(self, before: Any, ids: Array) -> None:
        """Refuses an obs that is not what arrived last, where no episode began: streams got mixed up."""
        going_on = ~self._is_starting[ids]
        rows = ids[going_on]
        expected, given = self.history.newest(rows), _rows(before, going_on)
        for one, two in zip(leaves_of(expected), leaves_of(given), strict=True):
            if not np.array_equal(one, two):
                row = rows[int((one != two).reshape(len(rows), -1).any(1).argmax())]
                after = "after its episode's end " if self._is_dead[row] else ""
                raise ValueError(
                    f"obs of environment {row} {after}is not the next_obs of the call before; pass "
                    "autoreset_mode='same_step' if it restarts in the same step, call reset() if it was "
                    "reset by hand, and copy observations if the environment reuses their memory"
                )

    def _arrive(
        self,
        rows: Array,
        observation: Any,
        action: Array,
        is_first: Array,
        is_last: Array,
        is_terminal: Array,
    ) -> Array:
        """Embeds, remembers and scores one row of each of these environments' streams."""
        self.history.append(rows, observation, action, is_first, is_last, is_terminal)
        if not self._can_embed and not self._is_recurrent:
            return np.zeros(len(rows), np.float32)
        at = torch.from_numpy(rows).to(self.device)
        state = map_arrays(lambda x: x[at], self._state)
        features, state = self._represent(observation, action, is_first, state)
        map_arrays(lambda old, new: old.__setitem__(at, new), self._state, state)
        if not self._can_embed:
            return np.zeros(len(rows), np.float32)
        if self.bonus.paid_in == "learning":
            return self._surprise_now(rows, is_first, is_terminal)
        return self._server(features, rows, is_first, is_terminal, observation=observation)

    def _surprise_now(self, rows: Array, is_first: Array, is_terminal: Array) -> Array:
        """BYOL-Explore: every prediction of the row that just arrived, from the newest window."""
        rewards = np.zeros(len(rows), np.float32)
        ready = self.history.num_rows[rows] >= self.config.window
        if ready.any():
            window = to_tensors(self.history.latest(rows[ready], self.config.window), self.device)
            with torch.no_grad():
                surprise = self._acting.surprise(window)[-1].cpu().numpy()
            rewards[ready] = observe(
                self.bonus,
                Features(surprise=surprise),
                rows[ready],
                is_first[ready],
                is_terminal[ready],
                self.config.terminal_observations,
            )
        return rewards

    @torch.inference_mode()
    def _represent(
        self, observation: Any, action: Array, is_first: Array, state: Any
    ) -> tuple[Features, Any]:
        tensors = to_tensors((map_arrays(np.ascontiguousarray, observation), action, is_first), self.device)
        features, state = self._acting.represent(tensors[0], tensors[1], tensors[2], state)
        return to_arrays(features), state


def _rows(observation: Any, rows: Array) -> Any:
    return map_arrays(lambda x: x[rows], observation)
