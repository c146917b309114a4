"""The memory of one epoch: fences, holds, checkpoints, snapshots; RECODE over one that dies, bit for bit."""

import errno
import os
import threading

import numpy as np
import pytest
from launch.ray.counting import Shown, request_of

from softcount.bonuses.make import BonusConfig, Place
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.launch.memory_plan import MemoryPlan
from softcount.launch.ray import journal, once
from softcount.launch.ray.client import MemoryClient, Unavailable
from softcount.launch.ray.once import EvaluationLost, Once, OnceConfig
from softcount.launch.ray.stamps import Request
from softcount.memory import RecodeConfig
from softcount.types import Features, leaves_of, map_arrays


def made(folder, **config):
    once.found(folder, Shown())
    return Once(Shown(), folder, OnceConfig(**config))


def test_a_successor_reads_a_record_whose_writer_has_just_looked_for_one(tmp_path):
    """Write, look, act against claim, read: whatever is acted upon is taken over."""
    for moment in ("before the write", "after the write", "after the look"):
        folder = tmp_path / moment
        old, taken = made(folder), []

        def take_over(folder=folder, taken=taken):
            taken.append(Once(Shown(), folder))

        write, check = os.write, old.journal.check_current

        def writing(descriptor, content, moment=moment, write=write, take_over=take_over):
            if moment == "before the write":
                journal.os.write = write
                take_over()
            num = write(descriptor, content)
            if moment == "after the write":
                journal.os.write = write
                take_over()
            return num

        def looking(moment=moment, check=check, take_over=take_over):
            check()
            if moment == "after the look":
                take_over()

        journal.os.write, old.journal.check_current = writing, looking
        try:
            answer = old.request(request_of(1, 1, 0, 5))
        finally:
            journal.os.write = write
        new = taken[0]
        assert answer.verdict == ("done" if moment == "after the look" else "superseded")
        assert new.ledger.server.log == ([] if moment == "before the write" else [5])
        again = new.request(request_of(1, 1, 0, 5))
        assert (again.verdict, again.value.tolist()) == ("done", [0, 5])
        assert new.ledger.server.log == [5]


def test_every_kind_of_stamp_has_its_verdict_and_a_successor_knows_them(tmp_path):
    memory = made(tmp_path)
    said = {
        (1, 5, 0, 7): ("done", 0),
        (1, 5, 1, 8): ("done", 1),
        (1, 5, 1, 9): ("reused", -1),
        (1, 5, 3, 7): ("gap", -1),
        (1, 6, 1, 7): ("gap", -1),  # a new life begins at 0
        (1, 6, 0, 7): ("done", 2),
        (1, 6, 1, 5): ("done", 3),
        (1, 6, 0, 4): ("answered", -1),
        (1, 5, 2, 7): ("older", -1),
    }
    for asked, expected in said.items():
        for _ in range(2 if expected[0] == "done" else 1):
            answer = memory.request(request_of(*asked))
            assert (answer.verdict, answer.position) == expected, asked
    memory.snapshot(wait=True)
    new = Once(Shown(), tmp_path)
    assert new.request(request_of(1, 6, 1, 5)).position == 3
    assert new.ledger.server.log == [7, 8, 7, 5]


def test_a_client_that_knows_a_later_memory_is_sent_there(tmp_path):
    memory = made(tmp_path)
    answer = memory.request(request_of(1, 1, 0, 5), known_epoch=memory.epoch + 1)
    assert answer.verdict == "superseded"
    assert memory.ledger.server.log == []


def test_lives_below_the_floor_are_refused(tmp_path):
    once.found(tmp_path, Shown(), floor=10)
    memory = Once(Shown(), tmp_path)
    assert memory.request(request_of(1, 9, 0, 5)).verdict == "older"
    assert memory.request(request_of(1, 10, 0, 5)).verdict == "done"
    assert Once(Shown(), tmp_path).request(request_of(2, 9, 0, 5)).verdict == "older"


def test_what_the_memory_refuses_is_answered_alike_for_ever_and_stops_nobody(tmp_path):
    memory = made(tmp_path)
    answer = memory.request(request_of(1, 1, 0, -5))
    assert (answer.verdict, answer.reason) == ("failed", "ValueError: -5 is no content")
    after = Once(Shown(), tmp_path)
    again = after.request(request_of(1, 1, 0, -5))
    assert again[:1] + again[2:] == answer[:1] + answer[2:]
    assert after.request(request_of(1, 1, 1, 6)).verdict == "done"


def test_while_somebody_holds_others_wait_and_then_go_on(tmp_path):
    memory = made(tmp_path)
    assert memory.hold(7, 60.0) == 0
    assert memory.request(request_of(1, 1, 0, 5)).verdict == "held"
    assert memory.hold(1, 60.0) == 0
    assert memory.request(request_of(1, 1, 0, 5)).verdict == "held"  # it is still the other's
    assert memory.request(request_of(7, 1, 0, 6)).verdict == "done"
    memory.hold(7, 0.0)
    assert memory.request(request_of(1, 1, 0, 5)).verdict == "done"


def test_an_evaluation_that_lost_its_memory_is_told(tmp_path):
    memory = made(tmp_path)
    memory.ask("begin_evaluation")
    assert memory.ask("evaluate") == 0
    with pytest.raises(EvaluationLost, match="started anew"):
        Once(Shown(), tmp_path).ask("evaluate")


def test_only_what_changes_nothing_can_be_asked_without_a_stamp(tmp_path):
    memory = made(tmp_path)
    memory.request(request_of(1, 1, 0, 5))
    assert memory.ask("metrics") == {"shown": 1.0}
    with pytest.raises(ValueError, match="load_state_dict cannot be asked without a stamp"):
        memory.ask("load_state_dict", {})
    Once(Shown(), tmp_path)
    with pytest.raises(journal.Superseded):
        memory.ask("metrics")
    with pytest.raises(journal.Superseded):
        memory.checkpoint()


def test_a_checkpoint_is_durable_and_begins_a_snapshot(tmp_path, monkeypatch):
    memory, synced = made(tmp_path), []
    memory.request(request_of(1, 1, 0, 5))
    sync = os.fdatasync
    monkeypatch.setattr(journal.os, "fdatasync", lambda descriptor: synced.append(sync(descriptor)))
    assert memory.checkpoint()["log"].tolist() == [5]
    memory.close()
    assert synced
    assert memory.pulse().snapshot_position == 1
    assert memory.pulse().journal_bytes == 0


def test_a_checkpoint_is_durable_though_a_snapshot_is_still_being_written(tmp_path, monkeypatch):
    memory, may_write, synced = made(tmp_path), threading.Event(), []
    save, sync = journal.save_snapshot, os.fdatasync
    monkeypatch.setattr(journal, "save_snapshot", lambda *a: (may_write.wait(10), save(*a)))
    memory.request(request_of(1, 1, 0, 5))
    memory.snapshot()
    memory.request(request_of(1, 1, 1, 6))
    monkeypatch.setattr(journal.os, "fdatasync", lambda descriptor: synced.append(sync(descriptor)))
    assert memory.checkpoint()["log"].tolist() == [5, 6]
    assert len(synced) == 1
    may_write.set()
    memory.close()
    assert memory.pulse().snapshot_position == 1


def test_a_snapshot_that_cannot_be_written_is_tried_again_and_nothing_is_lost(tmp_path, monkeypatch):
    memory = made(tmp_path, snapshot_batches=2)
    save = journal.save_snapshot

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(journal, "save_snapshot", refuse)
    for number in range(2):
        memory.request(request_of(1, 1, number, number))
    memory._join()
    monkeypatch.setattr(journal, "save_snapshot", save)
    memory.request(request_of(1, 1, 2, 2))
    assert "No space left" in memory.pulse().problem  # until one was written
    memory.request(request_of(1, 1, 3, 3))
    memory.close()
    assert (memory.pulse().snapshot_position, memory.pulse().problem) == (4, "")
    assert Once(Shown(), tmp_path).ledger.server.log == [0, 1, 2, 3]


def test_a_snapshot_holds_the_state_of_its_moment_though_more_is_counted_meanwhile(tmp_path, monkeypatch):
    memory, may_write = made(tmp_path, keep_history=True), threading.Event()
    save = journal.save_snapshot
    monkeypatch.setattr(journal, "save_snapshot", lambda *a: (may_write.wait(10), save(*a)))
    memory.request(request_of(1, 1, 0, 5))
    memory.snapshot()
    memory.request(request_of(1, 1, 1, 6))
    may_write.set()
    memory.close()
    position, state = journal.Lineage(tmp_path).load()
    assert (position, state["server"]["log"].tolist(), state["last"]["1"]["sequence"]) == (1, [5], 0)


PLAN = MemoryPlan(
    kind="recode",
    bonus=BonusConfig(
        recode=RecodeBonusConfig(memory=RecodeConfig(size=60, warmup_atoms=5), reembed_every=2),
        engine="numpy",
    ),
    place=Place(dim=4, num_envs=4, seed=3),
)


class Flaky:
    """Calls a memory that dies now and then: before it counts, after it, or not at all."""

    def __init__(self, folder, seed):
        self.folder, self.rng = folder, np.random.default_rng(seed)
        self.memory = Once(PLAN.build(), folder, OnceConfig(snapshot_batches=7, keep_history=True))

    def request(self, request, known_epoch, timeout_s):
        answer = self.memory.request(request, known_epoch) if self.rng.random() < 0.8 else None
        if answer is None or self.rng.random() < 0.2:
            self.memory = Once(PLAN.build(), self.folder, self.memory.config)
            raise Unavailable("nobody knows")
        return answer

    def ask(self, method, arguments, timeout_s):
        return self.memory.ask(method, *arguments)

    def hold(self, actor, seconds, timeout_s):
        return self.memory.hold(actor, seconds)


def same(a, b):
    return all(leaves_of(map_arrays(np.array_equal, a, b)))


def test_recode_over_a_memory_that_dies_is_recode_in_one_process_bit_for_bit(tmp_path):
    once.found(tmp_path, PLAN.build())
    calls, alone = Flaky(tmp_path, 0), PLAN.build()
    clients = [MemoryClient(calls, actor=actor, incarnation=1, sleep=lambda _: None) for actor in range(3)]
    rng, paid = np.random.default_rng(1), []
    for turn in range(40):
        rows = rng.normal(size=(4, 4)).astype(np.float32)
        batch = (
            Features(embedding=rows),
            np.arange(4),
            rng.random(4) < 0.1,
            rng.random(4) < 0.1,
            np.zeros(4, np.int64),
            rng.integers(0, 255, (4, 2), np.uint8),
        )
        paid.append(clients[turn % 3](*batch))
        assert paid[-1].dtype == np.float32
        assert np.array_equal(paid[-1], alone(*batch))
        if turn == 20:
            moved = rng.normal(size=(alone.num_founded(), 4)).astype(np.float32)
            clients[0].move_atoms(Features(embedding=moved))
            alone.move_atoms(Features(embedding=moved))
    assert sum(client.num_retries for client in clients) > 10
    assert same(clients[0].state_dict(), alone.state_dict())
    assert np.array_equal(clients[0].founding_observations(0, 9), alone.founding_observations(0, 9))
    replayed = PLAN.build()
    answers = [answer for _, answer in once.replay(tmp_path, replayed)]
    assert same(replayed.state_dict(), alone.state_dict())
    pays = [answer.value for answer in answers if answer.value is not None]
    assert all(map(np.array_equal, pays, paid))
    assert len(pays) == 40


def test_atoms_move_only_if_they_are_those_that_were_embedded(tmp_path):
    once.found(tmp_path, PLAN.build())
    memory = Once(PLAN.build(), tmp_path)
    calls = Flaky.__new__(Flaky)
    calls.memory, calls.rng, calls.request = memory, None, lambda r, e, t: memory.request(r, e)
    mover, actor = (MemoryClient(calls, actor=n, incarnation=1, sleep=lambda _: None) for n in (0, 1))

    def show(value):
        rows = np.full((1, 4), value, np.float32)
        observed = np.array([[value]], np.float32)
        actor(Features(embedding=rows), np.zeros(1, int), *np.zeros((2, 1), bool), None, observed)

    show(1.0)
    show(2.0)
    times = []

    def embed(observation):
        times.append(len(observation))
        if len(times) == 1:  # the hold runs out, and somebody comes in between
            memory.hold(0, 0.0)
            show(3.0)
        return Features(embedding=np.repeat(observation * 10, 4, 1).astype(np.float32))

    mover.move_with(embed, at_once=2)
    assert times == [2, 2, 1]  # at first two were there; then all three, two at once
    assert memory.ledger.server.memories()[""]["atoms"][:, 0].tolist() == [10.0, 20.0, 30.0]


def test_a_state_is_loaded_once_and_owned(tmp_path):
    memory, other = made(tmp_path), Shown()
    other.log = [7, 8]
    calls = Flaky.__new__(Flaky)
    calls.memory, calls.request = memory, lambda r, e, t: memory.request(r, e)
    MemoryClient(calls, actor=5, incarnation=1).load_state_dict(other.state_dict())
    assert memory.ledger.server.log == [7, 8]
    assert Once(Shown(), tmp_path).ledger.server.log == [7, 8]


def test_a_request_that_cannot_be_read_is_refused_and_stops_nobody(tmp_path):
    memory = made(tmp_path)
    assert memory.request(Request(1, 1, 0, "observe", b"\x08")).verdict == "failed"
    assert memory.request(request_of(1, 1, 1, 3)).verdict == "done"
    assert Once(Shown(), tmp_path).ledger.server.log == [3]
