"""A short storm: of everything sent nothing is lost, nothing doubled, and all is paid as it should be."""

import pytest

pytest.importorskip("ray")
pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]


def test_a_short_storm_over_memory_and_clients_loses_and_doubles_nothing(cluster, tmp_path):
    from chaos.memory_storm import Settings, ride_out
    from chaos.reckoning import faults_of

    faults = [("kill", "memory"), ("kill", "client"), ("full disk", "memory"), ("hang", "memory")]
    faults += [("pause", "client"), ("kill on a full disk", "memory")]
    settings = Settings(
        embeddings=30_000,
        clients=2,
        rows=16,
        atoms=500,
        snapshot_batches=300,
        faults=tuple(faults),
        pause_s=0.5,
    )
    found = ride_out(settings, cluster, tmp_path)
    assert faults_of(found["reckoning"]) == []
    assert found["reckoning"]["embeddings_answered"] >= 30_000 - 2 * 16
    problems = [event["problem"] for event in found["events"] if event["what"] == "memory"]
    assert found["skipped"] or any("No space left on device" in problem for problem in problems)
    assert len(found["faults"]) == len(faults) - 2 * len(found["skipped"])
    assert all(fault["back_after_s"] is not None for fault in found["faults"])
    assert found["epochs"] >= 4  # one that began, one that started, one for each that died
