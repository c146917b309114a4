"""Records of a journal on disk: a head with ids, length and epoch, a body, and a checksum of each.

    head     magic, length of the body, epoch, position, actor, incarnation, sequence, kind
    CRC-32   of the head
    body     the request's bytes
    CRC-32   of the body

A process that is killed while it writes leaves a *prefix* of a record: it was never answered, and reading
stops before it. Everything else that is not as it was written is damage, and an error: with a checksum
of its own, a length cannot lie, so a torn end is never mistaken for a flipped bit, nor the other way.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from softcount.launch.ray.stamps import KINDS, Request

MAGIC = b"SCJ1"
HEAD = struct.Struct("<4sIIQQQQB")
CRC = struct.Struct("<I")
OVERHEAD = HEAD.size + 2 * CRC.size


class JournalError(RuntimeError):
    """A journal that cannot be written, or whose content cannot be trusted."""


class JournalDamaged(JournalError):
    """A journal that is not as it was written."""

    def __init__(self, path: Path, offset: int, reason: str) -> None:
        super().__init__(
            f"{path} is damaged at byte {offset}: {reason}; resume the run from its last checkpoint"
        )


class Record(NamedTuple):
    """A request, and its place in the order of all."""

    epoch: int
    position: int
    request: Request


def encode(record: Record) -> bytes:
    """Returns the bytes of a record."""
    request = record.request
    head = HEAD.pack(
        MAGIC,
        len(request.body),
        record.epoch,
        record.position,
        request.actor,
        request.incarnation,
        request.sequence,
        KINDS.index(request.kind),
    )
    return b"".join((head, CRC.pack(zlib.crc32(head)), request.body, CRC.pack(zlib.crc32(request.body))))


def read(path: Path, *, epoch: int, first: int, num_bytes: int | None = None) -> Iterator[tuple[Record, int]]:
    """Yields the records of a file, each with the byte after it; stops before a torn end.

    With `num_bytes` there must be that many, and what follows them is not looked at: a successor has
    written down that it took over so much.
    """
    offset, position = 0, first
    with open(path, "rb") as file:
        while num_bytes is None or offset < num_bytes:
            head = file.read(HEAD.size + CRC.size)
            if len(head) < HEAD.size + CRC.size:
                break
            request, length = _request_of(head, path, offset, epoch, position)
            body = file.read(length + CRC.size)
            if len(body) < length + CRC.size:
                break
            if zlib.crc32(body[:length]) != CRC.unpack_from(body, length)[0]:
                raise JournalDamaged(path, offset, f"the body of record {position} has another checksum")
            offset += OVERHEAD + length
            yield Record(epoch, position, request._replace(body=body[:length])), offset
            position += 1
    if num_bytes is not None and offset != num_bytes:
        raise JournalDamaged(path, offset, f"{num_bytes} bytes were taken over, and they end here")


def _request_of(head: bytes, path: Path, offset: int, epoch: int, position: int) -> tuple[Request, int]:
    """Returns the stamp that a head holds, and the length of the body."""
    if zlib.crc32(head[: HEAD.size]) != CRC.unpack_from(head, HEAD.size)[0]:
        raise JournalDamaged(path, offset, f"the head of record {position} has another checksum")
    magic, length, found_epoch, found_position, actor, incarnation, sequence, kind = HEAD.unpack_from(head)
    if (magic, found_epoch, found_position) != (MAGIC, epoch, position) or kind >= len(KINDS):
        raise JournalDamaged(
            path,
            offset,
            f"it holds record {found_position} of epoch {found_epoch}; expected {position} of {epoch}",
        )
    return Request(actor, incarnation, sequence, KINDS[kind], b""), length
