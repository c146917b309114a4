"""Chunks come back as they were stored, in order, until they are evicted, from segments too."""

import numpy as np
import pytest

from softcount.replay.chunks import CODECS, ChunkStore

PERIOD, ENVS = 3, 2


def rows(number):
    """Observations, a column and states of both environments, all told apart by `number`."""
    image = np.arange(ENVS * PERIOD * 4, dtype=np.uint8).reshape(ENVS, PERIOD, 2, 2) + 30 * number
    reward = np.arange(ENVS * PERIOD, dtype=np.float32).reshape(ENVS, PERIOD) + 100 * number
    state = np.arange(ENVS * 2, dtype=np.float32).reshape(ENVS, 2) - number
    return {"": image}, {"reward": reward}, [state]


def filled(num, compression="none", max_chunks=8):
    store = ChunkStore(PERIOD, max_chunks, compression)
    for number in range(num):
        store.append(np.array([0, 1]), *rows(number))
    return store


@pytest.mark.parametrize("compression", CODECS)
def test_chunks_are_what_was_stored(compression):
    store = filled(3, compression)
    serials = np.array([5, 0])  # environment 1 of the third round, environment 0 of the first
    assert store.envs(serials).tolist() == [1, 0]
    (last, columns, states), (first, *_) = rows(2), rows(0)
    np.testing.assert_array_equal(store.column("reward", serials)[0], columns["reward"][1])
    np.testing.assert_array_equal(store.states(serials)[0][0], states[0][1])
    out = np.zeros((PERIOD, 2, 2, 2), np.uint8)
    store.rows(0, serials, out)
    np.testing.assert_array_equal(out[:, 0], last[""][1])
    np.testing.assert_array_equal(out[:, 1], first[""][0])
    start = np.zeros((2, 2, 2), np.uint8)
    store.first_rows(0, serials, start)
    np.testing.assert_array_equal(start, out[0])


def test_the_oldest_leaves_first_and_its_bytes_with_it():
    store = filled(2)
    per_chunk = store.num_bytes // 4
    assert store.evict() == 0
    assert store.num_bytes == 3 * per_chunk
    assert store.is_alive(np.arange(5)).tolist() == [False, True, True, True, False]
    store.append(np.array([1]), *rows(7))
    np.testing.assert_array_equal(store.column("reward", np.array([4]))[0], rows(7)[1]["reward"][1])


def test_a_full_store_says_so():
    store = filled(4)
    with pytest.raises(ValueError, match="full with 8 chunks; evict first"):
        store.append(np.array([0]), *rows(5))


def test_segments_give_the_same_store_without_what_was_evicted():
    store = filled(4)
    store.evict()
    again = ChunkStore(PERIOD, 8, "none")
    for first in (0, 3, 6):
        again.load_segment(store.segment(first, min(first + 3, 8)), oldest=2)
    assert (again.oldest, again.next_serial, len(again)) == (2, 8, 6)
    serials = np.arange(2, 8)
    np.testing.assert_array_equal(again.column("reward", serials), store.column("reward", serials))
    ours, theirs = np.zeros((2, PERIOD, 6, 2, 2), np.uint8)
    store.rows(0, serials, ours)
    again.rows(0, serials, theirs)
    np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ValueError, match="segments lack chunk 8; the next one is 9"):
        again.load_segment({**store.segment(7, 8), "serials": np.array([9])}, oldest=2)


def test_an_unknown_compression_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="compression is 'zip'; expected one of lz4, none"):
        ChunkStore(PERIOD, 8, "zip")
