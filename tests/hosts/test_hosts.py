"""Three hosts: cut off, healed, with a raylet killed, and asked with a wrong token."""

import pytest
from chaos.reckoning import faults_of
from hosts.netns import Hosts, reason_to_skip

pytest.importorskip("ray")
pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    if reason := reason_to_skip():
        pytest.skip(reason)
    with Hosts(3, tmp_path_factory.mktemp("hosts") / "token") as hosts:
        hosts.start_ray()
        yield hosts


def test_a_host_without_the_token_is_refused(hosts, tmp_path):
    from hosts.scenes import wrong_token

    said = wrong_token(hosts, tmp_path / "scene")
    assert "does not take this token: set RAY_AUTH_TOKEN_PATH" in said["wrong"]
    assert "joined" in said["right"]


def test_a_whole_run_goes_on_when_hosts_fail_and_its_books_agree(hosts, tmp_path):
    from chaos import books
    from hosts.whole_run import run_through_two_faults

    found = run_through_two_faults(hosts, tmp_path / "scene")
    assert books.faults_of(found["books"]) == []
    lost = found["books"]["rows_counted_and_lost_with_a_killed_actor"]
    assert 0 <= lost <= 4 * 17 * sum(found["restarts"].values())  # rows of 4 environments, in two messages
    assert found["restarts"]["memory"] == found["restarts"]["trainer"] == 0


@pytest.mark.parametrize("name", ["cut_off_client", "cut_off_memory", "killed_raylet"])
def test_nothing_is_lost_or_doubled_when_a_host_fails(hosts, tmp_path, name):
    from hosts import scenes

    found = getattr(scenes, name)(hosts, tmp_path / "scene")
    assert faults_of(found["reckoning"]) == []
    assert found["reckoning"]["embeddings_answered"] > 10_000
