"""The journal of a memory: every request in order, on disk before it is acted upon.

A memory has an *epoch*. Whoever takes over claims the next one, by a file that can be made only once:

    epoch-000003.json                        claimed by the third memory; says what it took over
    epoch-000003-000000001200.journal        its records from 1200 on; a new file is begun at every snapshot
    snapshot-000003-000000001200.safetensors the state before record 1200

No two memories write to one file. An old memory that lives on, as on a host that was cut off, must not
answer either: it writes a record, *then* looks whether a successor has claimed, *then* acts. A successor
claims, *then* reads. So a record that the old one acts upon is one that the successor has read; there is
no moment between. (This needs a file system on which a new file is seen at once, as on one machine.)
"""

from __future__ import annotations

import json
import os
import re
import socket
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from softcount import store
from softcount.launch.ray.records import JournalDamaged, JournalError, Record, encode, read
from softcount.launch.ray.stamps import Request
from softcount.types import State

FORMAT = "softcount-journal-1"
SNAPSHOT = "memory-snapshot"


class JournalFull(JournalError):
    """A record could not be written; the journal is as if it had not been tried."""


class Superseded(JournalError):
    """Another memory has taken over."""


@dataclass(frozen=True)
class Claim:
    """What a memory wrote down when it took over: from whom, up to where."""

    epoch: int
    position: int
    """Of its first record."""
    after: int | None
    """Whose successor it is; None for one that began from a given state."""
    last: str | None
    """The file of its predecessor that it read last."""
    num_bytes: int
    """How much of that file it took over."""


class Lineage:
    """What counts in a folder: a chain of memories, each of which took over from the one before."""

    def __init__(self, folder: Path, *, below: int | None = None) -> None:
        self.folder = folder
        claims = {epoch: _read_claim(folder, epoch) for epoch in epochs_in(folder)}
        self.claims: list[Claim] = []  # the newest first
        epoch = max((e for e, c in claims.items() if c and (below is None or e < below)), default=None)
        if epoch is None:
            raise JournalError(f"{folder} holds no memory's journal; begin one first")
        while epoch is not None:
            claim = claims.get(epoch)
            if claim is None:
                raise JournalError(f"{folder}: epoch {epoch} was taken over from, and its claim is gone")
            self.claims.append(claim)
            epoch = claim.after
        self.last: str | None = None  # the file read last, and how much of it
        self.num_bytes = 0
        self.position = 0  # after the last record read

    def snapshots(self) -> list[tuple[int, Path]]:
        """Returns positions and files of the snapshots that count, the newest first."""
        epochs = {claim.epoch for claim in self.claims}
        found = [entry for entry in _listed(self.folder, "snapshot") if entry[0] in epochs]
        return sorted(((position, path) for _, position, path in found), reverse=True)

    def load(self, *, oldest: bool = False) -> tuple[int, State]:
        """Reads the newest snapshot that is whole, or the very first."""
        snapshots = self.snapshots()
        problem: Exception | str = "there is none"
        for position, path in reversed(snapshots) if oldest else snapshots:
            try:
                return position, store.load(path, kind=SNAPSHOT)
            except store.StoreError as error:
                problem = error
        raise JournalError(f"{self.folder} holds no usable snapshot of the memory: {problem}")

    def records(self, start: int) -> Iterator[Record]:
        """Yields all records from a position on; remembers where they ended."""
        self.position, self.last, self.num_bytes = start, None, 0
        ends = [None, *self.claims[:-1]]  # who took over from each
        for claim, successor in zip(reversed(self.claims), reversed(ends), strict=True):
            yield from self._records_of(claim, successor, start)
            if successor is not None and self.position < successor.position:
                path = _claim_file(self.folder, successor.epoch)
                raise JournalDamaged(path, 0, f"records {self.position} to {successor.position - 1} are gone")

    def _records_of(self, claim: Claim, successor: Claim | None, start: int) -> Iterator[Record]:
        files = [(first, path) for e, first, path in _listed(self.folder, "journal") if e == claim.epoch]
        self.last, self.num_bytes = None, 0
        for number, (first, path) in enumerate(files):
            is_last = number + 1 == len(files)
            limit = None
            if successor is not None:
                if successor.last is None or path.name > successor.last:
                    break
                limit = successor.num_bytes if path.name == successor.last else None
            if not is_last and files[number + 1][0] <= start:
                continue  # a snapshot holds all of it
            yield from self._read(path, claim.epoch, first, limit, start)

    def _read(self, path: Path, epoch: int, first: int, limit: int | None, start: int) -> Iterator[Record]:
        if first > self.position:
            raise JournalDamaged(path, 0, f"records {self.position} to {first - 1} are missing before it")
        self.last, self.num_bytes = path.name, 0
        for record, end in read(path, epoch=epoch, first=first, num_bytes=limit):
            self.num_bytes = end
            if record.position < start:
                continue
            if record.position != self.position:
                raise JournalDamaged(path, end, f"record {record.position} was there before")
            self.position += 1
            yield record


class Journal:
    """The file that the memory of one epoch writes."""

    def __init__(self, folder: Path, epoch: int, position: int) -> None:
        self.folder, self.epoch, self.position = folder, epoch, position
        self.num_bytes = 0
        self._successor = str(_claim_file(folder, epoch + 1))
        self._descriptor = self._open()
        self._problem = ""
        self._is_superseded = False

    def _open(self) -> int:
        path = self.folder / f"epoch-{self.epoch:06d}-{self.position:012d}.journal"
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)

    def append(self, request: Request) -> int:
        """Writes a request and returns its place in the order: now it may be acted upon.

        Raises `JournalFull` if it cannot be written, and `Superseded` if somebody has taken over.
        """
        if self._is_superseded:  # a successor may be reading: what is there must stay as it is
            self.check_current()
        if self._problem:
            raise JournalFull(self._problem)
        content = memoryview(encode(Record(self.epoch, self.position, request)))
        num_bytes = self.num_bytes + len(content)
        try:
            while content:
                content = content[os.write(self._descriptor, content) :]
        except OSError as error:
            self._take_back()
            raise JournalFull(f"the memory's journal in {self.folder} cannot be written: {error}") from error
        self.check_current()
        self.num_bytes, self.position = num_bytes, self.position + 1
        return self.position - 1

    def _take_back(self) -> None:
        """Removes what was written of a record."""
        try:
            os.ftruncate(self._descriptor, self.num_bytes)
            os.lseek(self._descriptor, self.num_bytes, os.SEEK_SET)
        except OSError as error:  # what is there now must not be followed by anything
            self._problem = f"the memory's journal in {self.folder} cannot be mended: {error}"

    def check_current(self) -> None:
        """Raises `Superseded` if another memory has taken over."""
        if os.path.exists(self._successor):
            self._is_superseded = True
            raise Superseded(f"epoch {self.epoch} of the memory in {self.folder} was taken over")

    def sync(self) -> None:
        """Makes what was written outlast a loss of power."""
        os.fdatasync(self._descriptor)

    def rotate(self) -> None:
        """Goes on in a new file, if there is anything in this one."""
        if self.num_bytes == 0:
            return
        old, self._descriptor = self._descriptor, self._open()
        self.num_bytes = 0
        try:
            os.fdatasync(old)
        finally:
            os.close(old)

    def prune(self, lineage: Lineage) -> None:
        """Removes what no recovery needs: all before the last but one snapshot, and other lineages."""
        self.check_current()
        snapshots = lineage.snapshots()
        if len(snapshots) < 2:
            return
        needed, epochs = snapshots[1][0], {claim.epoch for claim in lineage.claims}
        for epoch, position, path in _listed(self.folder, "snapshot"):
            if epoch <= self.epoch and (epoch not in epochs or position < needed):
                path.unlink(missing_ok=True)
        files = [entry for entry in _listed(self.folder, "journal") if entry[0] <= self.epoch]
        kept = [entry for entry in files if entry[0] in epochs]
        ends = [first for _, first, _ in kept[1:]]
        done = {path for (_, _, path), end in zip(kept, ends) if end <= needed}
        for epoch, _, path in files:
            if epoch not in epochs or path in done:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def claim(folder: Path) -> int:
    """Claims the next epoch; from now on no memory of an earlier one answers."""
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        epoch = max(epochs_in(folder), default=0) + 1
        try:
            os.close(os.open(_claim_file(folder, epoch), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        except FileExistsError:
            continue
        store.sync_folder(folder)
        return epoch


def begin(folder: Path, epoch: int, state: State) -> None:
    """Makes an epoch the first of a lineage, which starts from a given state."""
    save_snapshot(folder, epoch, 0, state)
    _write_claim(folder, Claim(epoch, 0, None, None, 0))


def succeed(lineage: Lineage, epoch: int) -> Journal:
    """Makes an epoch the successor of a lineage that was read to its end."""
    last = lineage.last
    taken = Claim(epoch, lineage.position, lineage.claims[0].epoch, last, lineage.num_bytes)
    _write_claim(lineage.folder, taken)
    lineage.claims.insert(0, taken)
    return Journal(lineage.folder, epoch, lineage.position)


def save_snapshot(folder: Path, epoch: int, position: int, state: State) -> None:
    """Writes the state before the record of that position."""
    path = folder / f"snapshot-{epoch:06d}-{position:012d}.safetensors"
    store.save(path, state, kind=SNAPSHOT, makes_folder=False)


def epochs_in(folder: Path) -> list[int]:
    """Returns the epochs that were claimed in a folder."""
    names = (re.fullmatch(r"epoch-(\d+)\.json", path.name) for path in folder.glob("epoch-*.json"))
    return sorted(int(name[1]) for name in names if name)


def _listed(folder: Path, what: str) -> list[tuple[int, int, Path]]:
    """Returns epoch, position and path of files, in order."""
    pattern = re.compile(
        r"epoch-(\d+)-(\d+)\.journal" if what == "journal" else r"snapshot-(\d+)-(\d+)\.safetensors"
    )
    found = ((pattern.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted((int(name[1]), int(name[2]), path) for name, path in found if name)


def _claim_file(folder: Path, epoch: int) -> Path:
    return folder / f"epoch-{epoch:06d}.json"


def _write_claim(folder: Path, taken: Claim) -> None:
    document = {"format": FORMAT, **vars(taken), "host": socket.gethostname(), "pid": os.getpid()}
    document["crc"] = _crc(document)
    store.write_atomically(_claim_file(folder, taken.epoch), json.dumps(document, indent=1).encode())


def _read_claim(folder: Path, epoch: int) -> Claim | None:
    """Returns what a memory took over; None for one that died before it could say."""
    path = _claim_file(folder, epoch)
    content = path.read_bytes()
    if not content:
        return None
    try:
        document = json.loads(content)
        if document.pop("crc") != _crc(document):
            raise ValueError("it has another checksum")
        if document["format"] != FORMAT or document["epoch"] != epoch:
            raise ValueError(f"it is of format {document['format']} and epoch {document['epoch']}")
        return Claim(**{name: document[name] for name in Claim.__dataclass_fields__})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise JournalDamaged(path, 0, repr(error)) from error


def _crc(document: State) -> int:
    return zlib.crc32(json.dumps(document).encode())
