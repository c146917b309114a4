"""A run is a folder: configuration, reports, checkpoints, pictures.

    RUN/config.json         repeats the run exactly
    RUN/metrics.jsonl       one report per line
    RUN/events.out…         the same for TensorBoard
    RUN/checkpoints/        the last complete checkpoint
    RUN/live/               places and atoms, while somebody watches

Killing a run at any moment loses at most what came after its last checkpoint, and
`resume` continues it as if nothing had happened. One process at a time may train it.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from softcount import checkpoint, store
from softcount.config import RunConfig, only_read
from softcount.config_json import changes, from_json, to_json
from softcount.launch.build import build, build_evaluator, seeds_of
from softcount.launch.local import LocalLoop, Misfit, StateLost
from softcount.measure import bonus_accuracy
from softcount.roles.evaluator import Evaluation, Evaluator
from softcount.runs import live
from softcount.runs.describe import describe_episodes, describe_evaluation, describe_scores, places_of_tasks
from softcount.runs.folder import (
    CHECKPOINTS,
    CONFIG,
    METRICS,
    check_free,
    check_no_links,
    held,
    identity,
    made,
    remove_unstarted,
)
from softcount.runs.lock import FolderLock
from softcount.runs.metrics_log import EventLog, MetricsLog
from softcount.runs.runtime import Loop, start_loop

FREE_FIELDS = {
    "steps",
    "checkpoint_seconds",
    "overlap",
    "device",
    "engine",
    "memory_threads",
    "runtime",
    "wandb_project",
}
"""Fields that a resumed run may change without becoming another run."""

MOST_LOST = 5
"""How often in a row all roles go back to one checkpoint before the run gives up."""

Report = tuple[int, dict[str, float]]
T = TypeVar("T", bound=Loop)


class Run:
    """A training run in a folder, new or resumed."""

    def __init__(
        self,
        folder: Path,
        config: RunConfig,
        loop: Loop,
        log: MetricsLog,
        lock: FolderLock,
        *,
        resumed_at: int,
    ) -> None:
        self.folder, self.config, self.loop, self.log, self.lock = folder, config, loop, log, lock
        purge_step = resumed_at + 1 if resumed_at else None
        self.events = EventLog(folder, purge_step=purge_step, wandb_project=config.wandb_project)
        self.evaluator: Evaluator = loop.evaluator or build_evaluator(config, loop.roles.inference)
        self._task_names = loop.roles.actor.task_names()
        self._identity = identity(folder)
        self._num_lost = 0  # how often a role was lost since the last checkpoint
        self._started = (time.monotonic(), resumed_at)
        self._last_report = (time.monotonic(), resumed_at)

    @classmethod
    def create(cls, folder: Path, config: RunConfig) -> Run:
        """Starts a new run with a first checkpoint; what cannot be started leaves nothing behind.

        Refuses a folder that holds a run, or files that are named like those of one. Decision 171.
        """
        config = only_read(config)
        with made(folder), held(folder) as lock:
            check_free(folder)
            torch.set_num_threads(1)
            loop = start_loop(config, folder, make_loop)
            try:
                (folder / CHECKPOINTS).mkdir()
                run = cls(folder, config, loop, MetricsLog(folder / METRICS), lock, resumed_at=0)
                run._write_checkpoint()
                store.write_atomically(folder / CONFIG, to_json(config).encode())  # now it can be resumed
            except BaseException:
                loop.close()
                remove_unstarted(folder)
                raise
        return run

    @classmethod
    def resume(cls, folder: Path, **new_values: object) -> Run:
        """Continues a run from its last checkpoint; `new_values` may set what leaves it the same run."""
        old = read_config(folder)
        config = replace(old, **new_values)  # type: ignore[arg-type]
        with held(folder) as lock:
            check_no_links(folder)
            saved = checkpoint.read(folder / CHECKPOINTS)
            if "steps" in new_values and config.steps < saved.step:
                raise ValueError(
                    f"{folder} has done {saved.step:,} steps; expected to train to more than that in all, "
                    f"not to {config.steps:,}"
                )
            _check_unchanged(_saved_config(saved), config)
            loop = _restore(config, saved, lambda config: start_loop(config, folder, make_loop))
            if config != old:
                store.write_atomically(folder / CONFIG, to_json(config).encode())
            log = MetricsLog(folder / METRICS, keep_bytes=saved.metrics_bytes)
            return cls(folder, config, loop, log, lock, resumed_at=saved.step)

    def train(self, is_stopped: Callable[[], bool] = lambda: False) -> Iterator[Report]:
        """Trains to the end, or until told to stop, yielding each report as it is written.

        Takes checkpoints on the way, and one when it ends.
        """
        last_checkpoint = time.monotonic()
        while True:
            try:
                if self.loop.num_steps >= self.config.steps or is_stopped():
                    self.save()
                    return
                report = self._step()
                if report is not None:
                    yield report
                if time.monotonic() - last_checkpoint > self.config.checkpoint_seconds:
                    self.save()
                    last_checkpoint = time.monotonic()
            except StateLost as error:
                self._go_back(error)

    def _step(self) -> Report | None:
        """Takes a step; returns the report that was due after it, written down."""
        config, loop = self.config, self.loop
        before = loop.num_steps
        loop.step()
        is_due = bool(config.evaluate_every) and _crosses(before, loop.num_steps, config.evaluate_every)
        is_last = loop.num_steps >= config.steps
        if not (is_due or is_last or _crosses(before, loop.num_steps, config.report_every)):
            return None
        metrics = self._metrics()
        if is_due:
            metrics |= self._describe_evaluation()
            roles = loop.roles
            metrics |= bonus_accuracy.judge(
                roles.actor, roles.inference, roles.memory, loop.coverage, self._evaluation_seed()
            )
        self._check_still_there()  # TensorBoard's writer opens its file by name each time
        self.log.write(loop.num_steps, metrics)
        self.events.write(loop.num_steps, metrics)
        live.show_if_asked(self.folder, loop)
        return loop.num_steps, metrics

    def evaluate(self, *, keep_frames: bool = False) -> Evaluation:
        """Plays with the parameters that act now; the same step always plays the same episodes."""
        roles = self.loop.roles
        seed = self._evaluation_seed()
        return self.evaluator(roles.actor, roles.memory, seed=seed, keep_frames=keep_frames)

    def _describe_evaluation(self) -> dict[str, float]:
        evaluation = self.evaluate()
        metrics = describe_evaluation(evaluation, self._task_names)
        if not self.config.env_options.get("clip_rewards"):  # signs of rewards add up to no score
            metrics |= describe_scores(evaluation, self._task_names)
        return metrics

    def _evaluation_seed(self) -> int:
        seed = np.random.SeedSequence([seeds_of(self.config.seed).evaluation, self.loop.num_steps])
        return int(seed.generate_state(1)[0])

    def save(self) -> None:
        """Takes a checkpoint."""
        self._check_still_there()
        self._write_checkpoint()
        self._num_lost = 0

    def _check_still_there(self) -> None:
        """Ends a run whose folder was deleted or moved; it is not made again."""
        if identity(self.folder) != self._identity or not (self.folder / CONFIG).is_file():
            raise checkpoint.CheckpointError(
                f"{self.folder} was deleted, moved or emptied while its run was training: the checkpoint of "
                f"step {self.loop.num_steps:,} has nowhere to go, and nothing was written"
            )

    def _write_checkpoint(self) -> None:
        parts = self.loop.state_dict()
        parts["config"] = {"json": to_json(self.config)}
        checkpoint.write(
            self.folder / CHECKPOINTS,
            step=self.loop.num_steps,
            metrics_bytes=self.log.sync(),
            parts=parts,
            segments=self.loop.segments(),
        )

    def _go_back(self, why: StateLost) -> None:
        """Takes all roles and the reports back to the last checkpoint."""
        saved = checkpoint.read(self.folder / CHECKPOINTS)
        self._num_lost += 1
        if self._num_lost > MOST_LOST:
            raise RuntimeError(
                f"{why}, {self._num_lost} times since the checkpoint of step {saved.step:,}"
            ) from why
        warnings.warn(f"{why}; all roles go back to step {saved.step:,}", stacklevel=2)
        self.loop.load_state_dict(saved.parts, saved.segments)
        self.log.close()
        self.log = MetricsLog(self.folder / METRICS, keep_bytes=saved.metrics_bytes)
        self._last_report = (time.monotonic(), saved.step)

    def close(self) -> None:
        self.log.close()
        if identity(self.folder) == self._identity:  # TensorBoard opens its file by name at every write
            self.events.close()
        self.evaluator.close()
        self.loop.close()
        self.lock.release()

    def _metrics(self) -> dict[str, float]:
        loop, roles = self.loop, self.loop.roles
        loop.look()
        now, steps = time.monotonic(), loop.num_steps
        elapsed, done = now - self._last_report[0], steps - self._last_report[1]
        self._last_report = (now, steps)
        metrics = {"charts/SPS": done / max(elapsed, 1e-9), "time/elapsed": now - self._started[0]}
        episodes = roles.actor.take_episodes()
        metrics |= describe_episodes(episodes, self._task_names)
        metrics |= loop.means.take()
        metrics["charts/updates"] = loop.num_updates
        if loop.coverage is not None:
            metrics["coverage/places"] = loop.coverage.num_visited
            if loop.coverage.fraction is not None:
                metrics["coverage/fraction"] = loop.coverage.fraction
            tasks = roles.actor.tasks_of(np.flatnonzero(loop.coverage.visits))
            metrics |= places_of_tasks(tasks, self._task_names)
        metrics |= {f"intrinsic/{name}": x for name, x in roles.memory.metrics().items()}
        metrics |= {f"memory/{name}": x for name, x in roles.memory.describe().items()}
        metrics |= {f"replay/{name}": x for name, x in roles.replay.metrics().items()}
        metrics |= roles.actor.metrics(episodes)
        total = sum(loop.seconds.values())
        seconds = {**loop.seconds, "learner": loop.learner_seconds}
        metrics |= {f"time/{role}": x / max(total, 1e-9) for role, x in seconds.items()}
        return metrics


def read_config(folder: Path) -> RunConfig:
    path = folder / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"{folder} is not a run: it has no {CONFIG}")
    try:
        return from_json(path.read_text(encoding="utf-8"))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path} does not fit this version: {error}") from error


def read_reports(folder: Path) -> list[dict[str, Any]]:
    """Returns what a run reported up to its last checkpoint; what came later would be done again."""
    manifest = folder / CHECKPOINTS / checkpoint.MANIFEST
    if not manifest.exists():
        return []
    content = (folder / METRICS).read_bytes()[
        : json.loads(manifest.read_text(encoding="utf-8"))["metrics_bytes"]
    ]
    return [json.loads(line) for line in content.decode().splitlines()]


def make_loop(config: RunConfig) -> LocalLoop:
    """Builds the roles of a configuration and the loop that steps them."""
    config = only_read(config)
    return LocalLoop(
        build(config),
        relabel=config.meme.relabel,
        overlap=config.overlap,
        reembed_every=config.recode.reembed_every,
    )


def restore(config: RunConfig, saved: checkpoint.Checkpoint) -> LocalLoop:
    """Builds the roles of a configuration in this process and gives them the state of a checkpoint."""
    return _restore(config, saved, make_loop)


def _restore(config: RunConfig, saved: checkpoint.Checkpoint, make: Callable[[RunConfig], T]) -> T:
    torch.set_num_threads(1)
    try:
        loop = make(config)
    except (TypeError, ArithmeticError, MemoryError) as error:  # absurd numbers
        raise ValueError(
            f"the roles of {CONFIG} cannot be built: {error}; since the checkpoint it has changed in "
            f"{'; '.join(changes(_saved_config(saved), config)) or 'nothing'}"
        ) from error
    try:
        _fill(loop, saved)
    except BaseException:
        loop.close()
        raise
    return loop


def _fill(loop: Loop, saved: checkpoint.Checkpoint) -> None:
    """Gives a loop the state of a checkpoint that may have been written by anybody."""
    try:
        for part, expected in loop.state_dict().items():
            if part not in saved.parts:
                raise Misfit(part, "it is missing from the manifest")
            reason = checkpoint.find_misfit(saved.parts[part], expected)
            if reason is not None:
                raise Misfit(part, reason)
        loop.load_state_dict(saved.parts, saved.segments)
        if loop.num_steps != saved.step:
            raise Misfit("loop", f"num_steps is {loop.num_steps}; expected the manifest's step, {saved.step}")
    except Misfit as error:
        raise checkpoint.CheckpointError(
            f"the checkpoint of step {saved.step} does not fit its configuration: "
            f"{saved.files.get(error.part, error.part)}: {error.reason}"
        ) from error


def _saved_config(saved: checkpoint.Checkpoint) -> RunConfig:
    try:
        return from_json(saved.parts["config"]["json"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise checkpoint.CheckpointError(
            f"the checkpoint of step {saved.step} does not fit this version: "
            f"{saved.files.get('config', 'config')}: {error}"
        ) from error


def _check_unchanged(saved: RunConfig, config: RunConfig) -> None:
    differing = [change for change in changes(saved, config) if not _is_free(change.split(":")[0])]
    if differing:
        raise ValueError(
            "the configuration no longer fits the checkpoint: " + "; ".join(differing) + "; "
            f"only {', '.join(sorted(FREE_FIELDS))} may change when a run is resumed"
        )


def _is_free(field: str) -> bool:
    return field.partition(".")[0] in FREE_FIELDS


def _crosses(before: int, after: int, period: int) -> bool:
    return before // period != after // period
