"""The journal: cut anywhere it gives a prefix, any flipped bit is noticed, and a full disk spoils nothing."""

import errno
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launch.ray.counting import Shown, request_of

from softcount.launch.ray import journal, once
from softcount.launch.ray.journal import JournalFull, Superseded
from softcount.launch.ray.ledger import Ledger
from softcount.launch.ray.records import CRC, OVERHEAD, JournalDamaged, JournalError, Record, encode, read
from softcount.launch.ray.stamps import KINDS, Request


def folder_of(path, *, nums=(3, 0, 4), snapshots=()):
    """A lineage of several memories: each counts so many batches and dies; contents are 0, 1, 2, ..."""
    once.found(path, Shown())
    content = 0
    for epoch, num in enumerate(nums):
        memory = once.Once(Shown(), path, once.OnceConfig(keep_history=True))
        for _ in range(num):
            assert memory.request(request_of(content, 1, 0, content)).verdict == "done"
            content += 1
            if content in snapshots:
                memory.snapshot(wait=True)
        assert memory.epoch == epoch + 2
    return path


def recovered(path):
    """What a memory that takes over has been shown."""
    return once.Once(Shown(), path).ledger.server.log


def test_a_record_is_read_back_as_it_was_written(tmp_path):
    requests = [Request(7, 2**63 + 5, 2**40, kind, bytes(range(40))) for kind in KINDS]
    requests.append(Request(0, 0, 0, "observe", b""))
    content = [encode(Record(3, 10 + i, request)) for i, request in enumerate(requests)]
    path = tmp_path / "journal"
    path.write_bytes(b"".join(content))
    found = list(read(path, epoch=3, first=10))
    assert [record for record, _ in found] == [Record(3, 10 + i, r) for i, r in enumerate(requests)]
    assert [end for _, end in found] == [sum(map(len, content[: i + 1])) for i in range(4)]
    assert len(content[-1]) == OVERHEAD


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    return folder_of(tmp_path_factory.mktemp("history") / "memory", snapshots=(2,))


def copied(path):
    folder = Path(tempfile.mkdtemp()) / "memory"
    shutil.copytree(path, folder)
    return folder


def journals(path):
    return sorted(path.glob("*.journal"))


def test_all_that_was_counted_is_there_again(history):
    folder = copied(history)
    assert recovered(folder) == list(range(7))
    assert recovered(folder) == list(range(7))  # whoever comes next finds the same


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_a_journal_that_is_cut_anywhere_gives_the_batches_before_the_cut(history, data):
    folder = copied(history)
    last = journals(folder)[-1]
    size = last.stat().st_size
    cut = data.draw(st.integers(0, size))
    whole = [end for _, end in read(last, epoch=4, first=3) if end <= cut]
    os.truncate(last, cut)
    assert recovered(folder) == list(range(3 + len(whole)))
    assert recovered(folder) == list(range(3 + len(whole)))
    shutil.rmtree(folder.parent)


def test_a_record_that_lacks_a_byte_of_its_end_is_torn(history):
    folder = copied(history)
    last = journals(folder)[-1]
    ends = [end for _, end in read(last, epoch=4, first=3)]
    assert len(ends) > 1
    for num, end in reversed(list(enumerate(ends))):
        for missing in range(1, 2 * CRC.size):
            os.truncate(last, end - missing)
            assert [found for _, found in read(last, epoch=4, first=3)] == ends[:num]


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_what_a_successor_took_over_must_stay_whole(history, data):
    folder = copied(history)
    path = data.draw(st.sampled_from(journals(folder)[1:-2]))  # the first holds nothing that a snapshot lacks
    size = path.stat().st_size
    os.truncate(path, data.draw(st.integers(0, size - 1)))
    with pytest.raises(JournalDamaged, match=r"\.journal is damaged at byte \d+: \d+ bytes were taken over"):
        recovered(folder)
    shutil.rmtree(folder.parent)


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_any_flipped_bit_is_an_error_or_changes_nothing(history, data):
    folder = copied(history)
    path = data.draw(st.sampled_from([p for p in sorted(folder.iterdir()) if p.stat().st_size]))
    content = bytearray(path.read_bytes())
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    is_needed = path.suffix == ".journal" and path.name != journals(folder)[0].name
    try:
        found = recovered(folder)
    except JournalError:
        found = None
    shutil.rmtree(folder.parent)
    assert found is None or (found == list(range(7)) and not is_needed)


def test_a_flipped_bit_in_any_record_is_an_error(history, tmp_path):
    original, path = journals(history)[-1].read_bytes(), tmp_path / "flipped"
    for offset in range(0, len(original), 3):
        content = bytearray(original)
        content[offset] ^= 1 << offset % 8
        path.write_bytes(content)
        with pytest.raises(JournalDamaged, match="resume the run from its last checkpoint"):
            list(read(path, epoch=4, first=3))


def test_a_lost_file_in_the_middle_is_an_error(history):
    folder = copied(history)
    journals(folder)[1].unlink()
    with pytest.raises(JournalDamaged, match="records 2 to 2 are gone"):
        recovered(folder)
    folder = copied(history)
    journals(folder)[0].unlink()
    assert recovered(folder) == list(range(7))  # a snapshot holds what was in that one


def test_the_newest_snapshot_is_read_and_for_a_replay_the_first(history):
    lineage = journal.Lineage(history)
    assert lineage.load()[0] == 2
    assert lineage.load(oldest=True)[0] == 0


def test_a_snapshot_in_the_middle_of_a_file_is_gone_on_from(history):
    folder, half = copied(history), Shown()
    half.log = [0, 1, 2, 3, 4]
    journal.save_snapshot(folder, 4, 5, Ledger(half).state_dict())
    assert recovered(folder) == list(range(7))


def test_a_claim_that_was_changed_is_an_error(tmp_path):
    once.found(tmp_path, Shown())
    old = once.Once(Shown(), tmp_path)
    old.request(request_of(1, 1, 0, 5))
    once.Once(Shown(), tmp_path)
    claim = tmp_path / "epoch-000003.json"
    text = claim.read_text()
    assert "000000000000.journal" in text
    claim.write_text(text.replace("000000000000.journal", "000000000001.journal"))
    with pytest.raises(JournalDamaged, match="it has another checksum"):
        recovered(tmp_path)


def test_a_damaged_snapshot_is_replaced_by_the_one_before_and_a_longer_journal(history):
    folder = copied(history)
    newest = sorted(folder.glob("snapshot-*"))[-1]
    newest.write_bytes(newest.read_bytes()[:-1])
    assert recovered(folder) == list(range(7))
    for path in folder.glob("snapshot-*"):
        path.write_bytes(b"")
    with pytest.raises(JournalError, match="holds no usable snapshot of the memory"):
        recovered(folder)


def test_a_successor_writes_down_how_much_it_took_over(history):
    claims = [json.loads(path.read_text()) for path in sorted(history.glob("epoch-*.json"))]
    assert [(c["epoch"], c["after"], c["position"]) for c in claims] == [
        (1, None, 0),
        (2, 1, 0),
        (3, 2, 3),
        (4, 3, 3),
    ]
    taken = claims[2]
    assert taken["last"] == "epoch-000002-000000000002.journal"
    assert taken["num_bytes"] == (history / taken["last"]).stat().st_size > 0


def test_what_an_old_memory_writes_after_it_was_taken_over_does_not_count(tmp_path):
    once.found(tmp_path, Shown())
    old = once.Once(Shown(), tmp_path)
    old.request(request_of(1, 1, 0, 5))
    new = once.Once(Shown(), tmp_path)
    with pytest.raises(Superseded, match=r"epoch 2 of the memory in .* was taken over"):
        old.journal.append(request_of(1, 1, 1, 6))
    num_bytes = journals(tmp_path)[0].stat().st_size
    with pytest.raises(Superseded):
        old.journal.append(request_of(1, 1, 1, 6))
    assert journals(tmp_path)[0].stat().st_size == num_bytes  # a reader never sees a second try
    new.request(request_of(2, 1, 0, 7))
    assert recovered(tmp_path) == [5, 7]


def test_a_claim_that_was_never_finished_is_passed_over(tmp_path):
    folder_of(tmp_path, nums=(2,))
    claimed = journal.claim(tmp_path)
    assert recovered(tmp_path) == [0, 1]
    assert journal.epochs_in(tmp_path) == [1, 2, claimed, claimed + 1]


def test_a_folder_without_a_journal_says_so(tmp_path):
    with pytest.raises(JournalError, match="holds no memory's journal; begin one first"):
        once.Once(Shown(), tmp_path)


@pytest.mark.parametrize("written", [0, 1, 40, 60])
def test_a_full_disk_leaves_the_journal_as_it_was(tmp_path, monkeypatch, written):
    once.found(tmp_path, Shown())
    memory = once.Once(Shown(), tmp_path)
    memory.request(request_of(1, 1, 0, 5))
    before = journals(tmp_path)[0].read_bytes()
    write, left = os.write, [written]

    def into_little_space(descriptor, content):
        num = write(descriptor, content[: left[0]]) if left[0] else 0
        left[0] -= num
        if not num:
            raise OSError(errno.ENOSPC, "No space left on device")
        return num

    monkeypatch.setattr(journal.os, "write", into_little_space)
    with pytest.raises(JournalFull, match=r"cannot be written: .*No space left on device"):
        memory.journal.append(request_of(1, 1, 1, 6))
    monkeypatch.undo()
    assert journals(tmp_path)[0].read_bytes() == before
    assert memory.journal.append(request_of(1, 1, 1, 6)) == 1
    assert recovered(tmp_path) == [5, 6]


def test_a_journal_that_cannot_be_mended_takes_nothing_more(tmp_path, monkeypatch):
    once.found(tmp_path, Shown())
    memory = once.Once(Shown(), tmp_path)

    def refuse(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(journal.os, "write", refuse)
    monkeypatch.setattr(journal.os, "ftruncate", refuse)
    with pytest.raises(JournalFull, match="cannot be written"):
        memory.journal.append(request_of(1, 1, 0, 6))
    monkeypatch.undo()
    with pytest.raises(JournalFull, match="cannot be mended"):
        memory.journal.append(request_of(1, 1, 0, 6))
    assert recovered(tmp_path) == []


def test_only_the_last_two_snapshots_and_what_follows_them_are_kept(tmp_path):
    folder = tmp_path / "memory"
    once.found(folder, Shown())
    for _ in range(3):
        memory = once.Once(Shown(), folder, once.OnceConfig(snapshot_batches=2))
        start = memory.position
        for content in range(start, start + 5):
            memory.request(request_of(content, 1, 0, content))
            if memory._writer is not None:
                memory._writer.join()
        memory.close()
    positions = [int(path.stem.split("-")[2]) for path in sorted(folder.glob("snapshot-*"))]
    assert positions == [12, 14]
    firsts = [int(path.stem.split("-")[2]) for path in journals(folder)]
    assert firsts == [12, 14]
    assert recovered(folder) == list(range(15))


def test_a_new_lineage_ends_the_old_one(tmp_path):
    folder_of(tmp_path, nums=(3,))
    old = once.Once(Shown(), tmp_path)
    restored = Shown()
    restored.log = [40, 41]
    once.found(tmp_path, restored)
    assert old.request(request_of(9, 9, 0, 1)).verdict == "superseded"
    assert recovered(tmp_path) == [40, 41]
