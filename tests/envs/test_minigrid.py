import gymnasium
import minigrid  # noqa: F401
import numpy as np
import pytest

from softcount.envs.minigrid import MiniGridConfig, make_minigrid, tasks


@pytest.mark.parametrize("task", ["MultiRoom-N2-S4-v0", "KeyCorridorS3R2-v0", "ObstructedMaze-1Dlhb-v0"])
def test_images_and_rewards_are_minigrids_own(task):
    ours, theirs = make_minigrid(MiniGridConfig(task=task)), gymnasium.make(f"MiniGrid-{task}").unwrapped
    image, _ = ours.reset(seed=4)
    assert np.array_equal(image, theirs.reset(seed=4)[0]["image"])
    for action in np.random.default_rng(0).integers(7, size=200).tolist():
        image, *ends, info = ours.step(action)
        observation, *expected, _ = theirs.step(action)
        assert np.array_equal(image, observation["image"])
        assert ends == expected
        x, y = theirs.agent_pos
        assert info["place"] == y * theirs.width + x
        if ends[1] or ends[2]:
            image, _ = ours.reset()
            assert np.array_equal(image, theirs.reset()[0]["image"])


def test_views_show_the_whole_grid_or_pixels_and_the_limit_is_ours_to_set():
    full = make_minigrid(MiniGridConfig(task="MultiRoom-N2-S4-v0", view="full", max_steps=3))
    assert full.reset(seed=0)[0].shape == (25, 25, 3)
    assert [full.step(0)[3] for _ in range(3)] == [False, False, True]
    assert make_minigrid(MiniGridConfig(view="rgb")).reset(seed=0)[0].shape == (56, 56, 3)


def test_a_carried_target_survives_a_restore():
    # KeyCorridor ends when the carried object IS the target: identity, not equality, must be rebuilt.
    env, other = (make_minigrid(MiniGridConfig(task="KeyCorridorS3R1-v0")) for _ in range(2))
    rng = np.random.default_rng(0)
    env.reset(seed=1)
    for _ in range(3000):
        action = int(rng.integers(6))
        state = env.get_state()
        _, reward, terminated, truncated, _ = env.step(action)
        if reward > 0:
            break
        if terminated or truncated:
            env.reset()
    assert reward > 0
    other.set_state(state)
    assert other.step(action)[1:4] == (reward, True, False)


def test_a_state_of_another_task_is_refused():
    env, other = (
        make_minigrid(MiniGridConfig(task=task)) for task in ("MultiRoom-N2-S4-v0", "MultiRoom-N6-v0")
    )
    env.reset(seed=0)
    env.step(2)
    with pytest.raises(RuntimeError, match="did not repeat its episode"):
        other.set_state(env.get_state())


def test_wrong_input_is_named():
    assert {"MultiRoom-N4-S5-v1", "KeyCorridorS6R3-v0", "ObstructedMaze-Full-v1"} <= set(tasks())
    with pytest.raises(ValueError, match="did you mean 'KeyCorridorS3R3-v0'"):
        make_minigrid(MiniGridConfig(task="KeyCoridorS3R3-v0"))
    with pytest.raises(ValueError, match="view is 'map'"):
        MiniGridConfig(view="map")
    env = make_minigrid()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action 7 is illegal; expected 0 to 6"):
        env.step(7)
