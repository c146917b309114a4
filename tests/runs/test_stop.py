"""The first signal asks to stop, a second Ctrl-C insists, and afterwards everything is as before."""

import signal

import pytest

from softcount.runs.stop import StopOnSignal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_asks_and_does_not_interrupt(number):
    before = signal.getsignal(number)
    with StopOnSignal() as is_stopped:
        assert not is_stopped()
        signal.raise_signal(number)
        assert is_stopped()
    assert signal.getsignal(number) is before


def test_a_second_ctrl_c_stops_at_once_and_a_second_sigterm_does_not():
    with StopOnSignal() as is_stopped:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert is_stopped()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_what_was_ignored_stays_ignored():
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with StopOnSignal() as is_stopped:
            signal.raise_signal(signal.SIGTERM)
            assert not is_stopped()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
