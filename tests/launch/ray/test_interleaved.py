"""Any interleaving of sends, repeats, crashes, full disks and takings-over is one sequential memory."""

import errno
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from launch.ray.counting import Shown, request_of
from oracles.once import ExactlyOnce

from softcount.launch.ray import journal, ledger, once
from softcount.launch.ray.once import Once, OnceConfig

CONFIG = OnceConfig(snapshot_batches=3)


class Killed(BaseException):
    """The process is gone here."""


@contextmanager
def dying(where, num_bytes=0):
    """Kills whoever writes a record: before it, in the middle of it, or after it and before acting."""
    write, act = os.write, ledger.Ledger.act

    def torn(descriptor, content):
        write(descriptor, content[:num_bytes])
        raise Killed

    def dead(*_):
        raise Killed

    try:
        if where == "while writing":
            journal.os.write = torn
        if where == "before acting":
            ledger.Ledger.act = dead
        yield
    finally:
        journal.os.write, ledger.Ledger.act = write, act


@contextmanager
def full_disk(num_bytes):
    write = os.write

    def refuse(descriptor, content):
        if num_bytes and len(content) > num_bytes:
            return write(descriptor, content[:num_bytes])
        raise OSError(errno.ENOSPC, "No space left on device")

    journal.os.write = refuse
    try:
        yield
    finally:
        journal.os.write = write


class Interleaved(RuleBasedStateMachine):
    """The memory on disk beside one that never dies."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp()) / "memory"
        self.oracle = ExactlyOnce()
        once.found(self.folder, Shown())
        self.zombies = []
        self.memory = Once(Shown(), self.folder, CONFIG)

    def request(self, actor, life, back, content):
        """A request `back` places before the next one that is due; −1 leaves one out."""
        lives = self.oracle.answers.get(actor, {})
        life = max(0, max(lives, default=1) + life)
        number = max(0, len(lives.get(life, [])) - back)
        return actor, life, number, content

    @rule(
        actor=st.integers(0, 2),
        life=st.sampled_from([0, 0, 0, 0, 1, -1]),
        back=st.sampled_from([0, 0, 0, 1, 1, 2, -1]),
        content=st.integers(0, 2),
    )
    def send(self, actor, life, back, content):
        asked = self.request(actor, life, back, content)
        answer = self.memory.request(request_of(*asked))
        verdict, place = self.oracle.send(*asked)
        assert (answer.verdict, answer.position, answer.epoch) == (verdict, place, self.memory.epoch)
        if verdict == "done":
            assert answer.value.tolist() == [place, content]

    @rule(actor=st.integers(0, 2), num_bytes=st.integers(0, 300), content=st.integers(0, 2))
    def die_while_writing(self, actor, num_bytes, content):
        asked = self.request(actor, 0, 0, content)
        with dying("while writing", num_bytes), pytest.raises(Killed):
            self.memory.request(request_of(*asked))
        self.take_over()  # not counted: its record was never whole

    @rule(actor=st.integers(0, 2), content=st.integers(0, 2))
    def die_before_acting(self, actor, content):
        asked = self.request(actor, 0, 0, content)
        with dying("before acting"), pytest.raises(Killed):
            self.memory.request(request_of(*asked))
        self.oracle.send(*asked)  # counted, and nobody was told
        self.take_over()

    @rule()
    def take_over(self):
        """Another memory is started while this one lives on."""
        self.zombies.append(self.memory)
        self.memory = Once(Shown(), self.folder, CONFIG)
        self.memory.journal.check_current()

    @rule(actor=st.integers(0, 2), content=st.integers(0, 2), which=st.integers(0, 9))
    def send_to_an_old_memory(self, actor, content, which):
        if self.zombies:
            asked = self.request(actor, 0, 0, content)
            old = self.zombies[which % len(self.zombies)]
            assert old.request(request_of(*asked)).verdict == "superseded"

    @rule(actor=st.integers(0, 2), num_bytes=st.integers(0, 60), content=st.integers(0, 2))
    def run_out_of_disk(self, actor, num_bytes, content):
        asked = self.request(actor, 0, 0, content)
        with full_disk(num_bytes):
            answer = self.memory.request(request_of(*asked))
        assert (answer.verdict, answer.position) == ("full", -1)
        assert "No space left" in self.memory.pulse().problem

    @rule()
    def snapshot(self):
        self.memory.snapshot(wait=True)

    def teardown(self):
        contents = [content for *_, content in self.oracle.counted]
        assert self.memory.ledger.server.log == contents
        assert Once(Shown(), self.folder, CONFIG).ledger.server.log == contents
        for memory in (self.memory, *self.zombies):
            memory.close()
        shutil.rmtree(self.folder.parent)


TestInterleaved = Interleaved.TestCase
TestInterleaved.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
