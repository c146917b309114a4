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
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from softcount import checkpoint, store
from softcount.config import RunConfig, only_read
from softcount.config_json import changes, from_json, to_json
from softcount.launch.build import build, build_evaluator, seeds_of
from softcount.launch.local import LocalLoop, Misfit
from softcount.measure import bonus_accuracy
from softcount.roles.actor import Episode
from softcount.roles.evaluator import Evaluation, Evaluator
from softcount.runs import live
from softcount.runs.lock import FolderLock
from softcount.runs.metrics_log import EventLog, MetricsLog
from softcount.scores import capped_returns
from softcount.types import Array

CONFIG, METRICS, CHECKPOINTS = "config.json", "metrics.jsonl", "checkpoints"
EVENTS = "events.out.tfevents.*"
FREE_FIELDS = {
    "steps",
    "checkpoint_seconds",
    "overlap",
    "device",
    "engine",
    "memory_threads",
    "wandb_project",
}
"""Fields that a resumed run may change without becoming another run."""

Report = tuple[int, dict[str, float]]


class Run:
    """A training run in a folder, new or resumed."""

    def __init__(
        self,
        folder: Path,
        config: RunConfig,
        loop: LocalLoop,
        log: MetricsLog,
        lock: FolderLock,
        *,
        resumed_at: int,
    ) -> None:
        self.folder, self.config, self.loop, self.log, self.lock = folder, config, loop, log, lock
        purge_step = resumed_at + 1 if resumed_at else None
        self.events = EventLog(folder, purge_step=purge_step, wandb_project=config.wandb_project)
        self.evaluator: Evaluator = build_evaluator(config, loop.roles.inference)
        self._task_names = loop.roles.actor.task_names()
        self._identity = _identity(folder)
        self._started = (time.monotonic(), resumed_at)
        self._last_report = (time.monotonic(), resumed_at)

    @classmethod
    def create(cls, folder: Path, config: RunConfig) -> Run:
        """Starts a new run with a first checkpoint; what cannot be started leaves nothing behind.

        Refuses a folder that holds a run, or files that are named like those of one. Decision 171.
        """
        config = only_read(config)
        with _made(folder), _held(folder) as lock:
            _check_free(folder)
            torch.set_num_threads(1)
            loop = make_loop(config)
            try:
                (folder / CHECKPOINTS).mkdir()
                run = cls(folder, config, loop, MetricsLog(folder / METRICS), lock, resumed_at=0)
                run._write_checkpoint()
                store.write_atomically(folder / CONFIG, to_json(config).encode())  # now it can be resumed
            except BaseException:
                _remove_unstarted(folder)
                raise
        return run

    @classmethod
    def resume(cls, folder: Path, **new_values: object) -> Run:
        """Continues a run from its last checkpoint; `new_values` may set what leaves it the same run."""
        old = read_config(folder)
        config = replace(old, **new_values)  # type: ignore[arg-type]
        with _held(folder) as lock:
            _check_no_links(folder)
            saved = checkpoint.read(folder / CHECKPOINTS)
            if "steps" in new_values and config.steps < saved.step:
                raise ValueError(
                    f"{folder} has done {saved.step:,} steps; expected to train to more than that in all, "
                    f"not to {config.steps:,}"
                )
            _check_unchanged(_saved_config(saved), config)
            loop = restore(config, saved)
            if config != old:
                store.write_atomically(folder / CONFIG, to_json(config).encode())
            log = MetricsLog(folder / METRICS, keep_bytes=saved.metrics_bytes)
            return cls(folder, config, loop, log, lock, resumed_at=saved.step)

    def train(self, is_stopped: Callable[[], bool] = lambda: False) -> Iterator[Report]:
        """Trains to the end, or until told to stop, yielding each report as it is written.

        Takes checkpoints on the way, and one when it ends.
        """
        config, loop = self.config, self.loop
        last_checkpoint = time.monotonic()
        while loop.num_steps < config.steps and not is_stopped():
            before = loop.num_steps
            loop.step()
            is_due = bool(config.evaluate_every) and _crosses(before, loop.num_steps, config.evaluate_every)
            is_last = loop.num_steps >= config.steps
            if is_due or is_last or _crosses(before, loop.num_steps, config.report_every):
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
                yield loop.num_steps, metrics
            if time.monotonic() - last_checkpoint > config.checkpoint_seconds:
                self.save()
                last_checkpoint = time.monotonic()
        self.save()

    def evaluate(self, *, keep_frames: bool = False) -> Evaluation:
        """Plays with the parameters that act now; the same step always plays the same episodes."""
        roles = self.loop.roles
        seed = self._evaluation_seed()
        return self.evaluator(roles.actor, roles.memory, seed=seed, keep_frames=keep_frames)

    def _describe_evaluation(self) -> dict[str, float]:
        evaluation = self.evaluate()
        metrics = _describe_evaluation(evaluation, self._task_names)
        if not self.config.env_options.get("clip_rewards"):  # signs of rewards add up to no score
            metrics |= _describe_scores(evaluation, self._task_names)
        return metrics

    def _evaluation_seed(self) -> int:
        seed = np.random.SeedSequence([seeds_of(self.config.seed).evaluation, self.loop.num_steps])
        return int(seed.generate_state(1)[0])

    def save(self) -> None:
        """Takes a checkpoint."""
        self._check_still_there()
        self._write_checkpoint()

    def _check_still_there(self) -> None:
        """Ends a run whose folder was deleted or moved; it is not made again."""
        if _identity(self.folder) != self._identity or not (self.folder / CONFIG).is_file():
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

    def close(self) -> None:
        self.log.close()
        if _identity(self.folder) == self._identity:  # TensorBoard opens its file by name at every write
            self.events.close()
        self.loop.roles.actor.close()
        self.evaluator.env.close()
        self.lock.release()

    def _metrics(self) -> dict[str, float]:
        loop, roles = self.loop, self.loop.roles
        now, steps = time.monotonic(), loop.num_steps
        elapsed, done = now - self._last_report[0], steps - self._last_report[1]
        self._last_report = (now, steps)
        metrics = {"charts/SPS": done / max(elapsed, 1e-9), "time/elapsed": now - self._started[0]}
        episodes = roles.actor.take_episodes()
        metrics |= _describe_episodes(episodes, self._task_names)
        metrics |= loop.means.take()
        metrics["charts/updates"] = loop.num_updates
        if loop.coverage is not None:
            metrics["coverage/places"] = loop.coverage.num_visited
            if loop.coverage.fraction is not None:
                metrics["coverage/fraction"] = loop.coverage.fraction
            tasks = roles.actor.tasks_of(np.flatnonzero(loop.coverage.visits))
            metrics |= _places_of_tasks(tasks, self._task_names)
        metrics |= {f"intrinsic/{name}": x for name, x in roles.memory.metrics().items()}
        metrics |= {f"memory/{name}": x for name, x in roles.memory.describe().items()}
        metrics |= {f"replay/{name}": x for name, x in roles.replay.metrics().items()}
        metrics |= roles.actor.metrics(episodes)
        total = sum(loop.seconds.values())
        seconds = {**loop.seconds, "learner": loop.learner_seconds}
        metrics |= {f"time/{role}": x / max(total, 1e-9) for role, x in seconds.items()}
        return metrics


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Makes a folder, and takes away again what it made if something goes wrong."""
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # somebody else has put something there
            for each in new:
                each.rmdir()
        raise


@contextmanager
def _held(folder: Path) -> Iterator[FolderLock]:
    """Holds a folder, and lets go of it again only if something goes wrong."""
    lock = FolderLock(folder)
    try:
        yield lock
    except BaseException:
        lock.release()
        raise


def _identity(folder: Path) -> tuple[int, int] | None:
    """Tells a folder from another one of the same name; None if there is none."""
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _check_free(folder: Path) -> None:
    """Makes sure that a new run in this folder touches nobody's files."""
    if os.path.lexists(folder / CONFIG):
        raise FileExistsError(f"{folder} already holds a run; resume it, or choose another folder")
    taken = [name for name in (METRICS, CHECKPOINTS) if os.path.lexists(folder / name)]
    taken += sorted(path.name for path in folder.glob(EVENTS))
    if taken:
        raise FileExistsError(
            f"{folder} holds {', '.join(taken)} but no {CONFIG}: it is no run, or one that was killed while "
            "it started; nothing was touched; choose another folder, or move them away"
        )


def _check_no_links(folder: Path) -> None:
    """Makes sure that what a run writes stays in its folder."""
    for name in (CONFIG, METRICS, CHECKPOINTS):
        if (folder / name).is_symlink():
            raise ValueError(f"{folder / name} is a link; expected it to lie in the folder of its run")


def _remove_unstarted(folder: Path) -> None:
    """Takes away what a run wrote that could not be started; none of it was there before."""
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    for path in (folder / METRICS, *folder.glob(EVENTS)):
        with suppress(OSError):
            path.unlink(missing_ok=True)


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
    """Builds the roles of a configuration and gives them the state of a checkpoint."""
    torch.set_num_threads(1)
    try:
        loop = make_loop(config)
    except (TypeError, ArithmeticError, MemoryError) as error:  # absurd numbers
        raise ValueError(
            f"the roles of {CONFIG} cannot be built: {error}; since the checkpoint it has changed in "
            f"{'; '.join(changes(_saved_config(saved), config)) or 'nothing'}"
        ) from error
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
    return loop


def _saved_config(saved: checkpoint.Checkpoint) -> RunConfig:
    try:
        return from_json(saved.parts["config"]["json"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise checkpoint.CheckpointError(
            f"the checkpoint of step {saved.step} does not fit this version: "
            f"{saved.files.get('config', 'config')}: {error}"
        ) from error


def _check_unchanged(saved: RunConfig, config: RunConfig) -> None:
    differing = [change for change in changes(saved, config) if change.split(":")[0] not in FREE_FIELDS]
    if differing:
        raise ValueError(
            "the configuration no longer fits the checkpoint: " + "; ".join(differing) + "; "
            f"only {', '.join(sorted(FREE_FIELDS))} may change when a run is resumed"
        )


def _crosses(before: int, after: int, period: int) -> bool:
    return before // period != after // period


def _describe_episodes(episodes: list[Episode], tasks: tuple[str, ...]) -> dict[str, float]:
    """Returns means over episodes, and over those of each task where there are several."""
    metrics: dict[str, float] = {"charts/episodes": len(episodes)}
    if episodes:
        metrics |= {f"charts/{name}": x for name, x in _means(episodes).items()}
    for task, name in enumerate(tasks if len(tasks) > 1 else ()):
        own = [episode for episode in episodes if episode.task == task]
        metrics[f"charts/episodes/{name}"] = len(own)
        if own:
            metrics |= {f"charts/{measure}/{name}": x for measure, x in _means(own).items()}
    return metrics


def _places_of_tasks(tasks: Array, names: tuple[str, ...]) -> dict[str, float]:
    """Returns how many of the visited places lie in each task, where there are several."""
    if len(names) == 1:
        return {}
    return {f"coverage/places/{name}": int((tasks == task).sum()) for task, name in enumerate(names)}


def _means(episodes: list[Episode]) -> dict[str, float]:
    extrinsic, intrinsic, length, _, _ = np.array(episodes, np.float64).T
    return {
        "episodic_return": float(extrinsic.mean()),
        "intrinsic_return": float(intrinsic.mean()),
        "episodic_length": float(length.mean()),
        "success_rate": float((extrinsic > 0).mean()),
    }


def _describe_evaluation(evaluation: Evaluation, tasks: tuple[str, ...]) -> dict[str, float]:
    parts = {"": evaluation}
    if len(tasks) > 1:
        parts |= {f"/{name}": evaluation.of_task(task) for task, name in enumerate(tasks)}
    metrics = {}
    for suffix, part in parts.items():
        metrics[f"eval/return{suffix}"] = part.mean_return
        metrics[f"eval/success_rate{suffix}"] = part.success_rate
        metrics[f"eval/length{suffix}"] = float(np.mean([episode.length for episode in part.episodes]))
    return metrics


def _describe_scores(evaluation: Evaluation, tasks: tuple[str, ...]) -> dict[str, float]:
    """Returns capped human-normalised scores by task, and their mean where every task has one."""
    returns = {name: evaluation.of_task(task).mean_return for task, name in enumerate(tasks)}
    scores = capped_returns(returns)
    metrics = {f"eval/capped_score/{name}": score for name, score in scores.items() if len(tasks) > 1}
    if len(scores) == len(tasks):
        metrics["eval/capped_score"] = float(np.mean(list(scores.values())))
    return metrics
