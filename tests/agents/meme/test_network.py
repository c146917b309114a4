import pytest
import torch

from softcount.agents.body import previous
from softcount.agents.meme.network import MemeNetwork, NetworkConfig
from softcount.agents.protocols import Inputs
from softcount.torsos.actions import ActionCoding
from softcount.types import ArraySpec, ContinuousActions, DiscreteActions

T, B, N, A = 6, 3, 2, 4
SPEC = ArraySpec((5,), "float32")
CONFIG = NetworkConfig(torso="mlp", core_size=8, head_size=16, num_mixtures=N)


def make(config=CONFIG, seed=0):
    torch.manual_seed(seed)
    network = MemeNetwork(SPEC, DiscreteActions(A), config)
    is_first = torch.zeros(T, B, dtype=torch.bool)
    is_first[3, 0] = is_first[2, 2] = True
    inputs = Inputs(
        torch.randn(T, B, 5), torch.randint(A, (T, B)), torch.randn(T, B), torch.randn(T, B).abs(), is_first
    )
    return network, inputs


def changed(network, inputs, **change):
    """Largest change of all values per row when one input changes."""
    state = tuple(torch.ones_like(x) for x in network.initial_state(B))
    with torch.no_grad():
        before, after = (network(x, state)[0].q_extrinsic for x in (inputs, inputs._replace(**change)))
    return (before - after).abs().amax((2, 3)) > 1e-7


def test_all_mixtures_have_heads_of_their_own():
    network, inputs = make()
    outputs, state = network(inputs, network.initial_state(B))
    for x in outputs:
        assert x.shape == (T, B, N, A)
        assert (x[:, :, 0] - x[:, :, 1]).abs().min() > 0
    assert [x.shape for x in state] == [(B, 8), (B, 8)]


def test_dueling_advantages_have_mean_zero():
    network, inputs = make()
    outputs, _ = network(inputs, network.initial_state(B))
    features, _ = network.unroll(inputs, network.initial_state(B))
    hidden = torch.relu(network.value_hidden(features)).chunk(4, -1)
    torch.testing.assert_close(outputs.q_extrinsic.mean(-1), network.value_out[0](hidden[0]))
    torch.testing.assert_close(outputs.q_intrinsic.mean(-1), network.value_out[1](hidden[2]))


def test_the_policy_alone_is_the_same_policy():
    network, inputs = make()
    outputs, state = network(inputs, network.initial_state(B))
    logits, other = network.policy(inputs, network.initial_state(B))
    torch.testing.assert_close(logits, outputs.logits)
    torch.testing.assert_close(other, state)


def test_a_row_depends_on_the_past_of_its_episode_and_on_nothing_else():
    network, inputs = make()
    observation = inputs.observation.clone()
    observation[1] += 1
    rows = changed(network, inputs, observation=observation)
    assert rows[0].tolist() == [False] * B
    assert rows[1].tolist() == [True] * B
    assert rows[:, 0].tolist() == [False, True, True, False, False, False]  # FIRST at 3
    assert rows[:, 1].tolist() == [False, True, True, True, True, True]
    assert rows[:, 2].tolist() == [False, True, False, False, False, False]  # FIRST at 2


@pytest.mark.parametrize("name", ["prev_action", "reward", "prev_intrinsic"])
def test_inputs_from_the_step_before_count_and_are_blank_on_first_rows(name):
    network, inputs = make()
    other = getattr(inputs, name).clone()
    other[3, :2] = (other[3, :2] + 1) % A
    rows = changed(network, inputs, **{name: other})
    assert not rows[:3].any()
    assert rows[3:].tolist() == [[False, True, False]] * 3


def test_what_the_step_before_contributes():
    _, inputs = make()
    found = previous(inputs, ActionCoding(DiscreteActions(A)))
    assert found.shape == (T, B, A + 2)
    assert found[1, 0, :A].tolist() == torch.nn.functional.one_hot(inputs.prev_action[1, 0], A).tolist()
    reward = inputs.reward[1, 0].item()
    expected = (abs(reward) + 1) ** 0.5 - 1 + 1e-3 * abs(reward)
    assert abs(found[1, 0, A].item()) == pytest.approx(expected, rel=1e-5)
    assert (found[1, 0, A + 1] > 0) == (inputs.prev_intrinsic[1, 0] > 0)
    assert (found[3, 0] == 0).all()


def test_without_a_core_only_the_observation_counts():
    network, inputs = make(NetworkConfig(torso="mlp", core="none", head_size=16, num_mixtures=N))
    assert network.initial_state(B) == ()
    for name in ("prev_action", "reward", "prev_intrinsic", "is_first"):
        assert not changed(network, inputs, **{name: torch.zeros_like(getattr(inputs, name))}).any()
    observation = inputs.observation.clone()
    observation[1] += 1
    rows = changed(network, inputs, observation=observation)
    assert rows[1].all()
    assert rows.sum() == B


@pytest.mark.parametrize("reaches", [False, True])
def test_the_policys_gradient_stops_at_the_body_unless_asked(reaches):
    config = NetworkConfig(
        torso="mlp", core_size=8, head_size=16, num_mixtures=N, policy_grad_to_torso=reaches
    )
    network, inputs = make(config)
    outputs, _ = network(inputs, network.initial_state(B))
    outputs.logits.square().sum().backward()
    assert all(p.grad is not None for name, p in network.named_parameters() if name.startswith("policy"))
    body = [p.grad for name, p in network.named_parameters() if name.startswith(("torso", "core"))]
    assert all((grad is not None) == reaches for grad in body)


def test_dict_observations_and_images_work():
    spec = {"image": ArraySpec((7, 7, 3), "uint8"), "sensor": ArraySpec((4,), "float32")}
    network = MemeNetwork(spec, DiscreteActions(A), NetworkConfig(torso="grid", core_size=8, head_size=8))
    observation = {"image": torch.zeros(2, 1, 7, 7, 3, dtype=torch.uint8), "sensor": torch.zeros(2, 1, 4)}
    zeros = torch.zeros(2, 1)
    outputs, _ = network(
        Inputs(observation, zeros.long(), zeros, zeros, zeros.bool()), network.initial_state(1)
    )
    assert outputs.logits.shape == (2, 1, 16, A)


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="MEME needs DiscreteActions"):
        MemeNetwork(SPEC, ContinuousActions((0.0,), (1.0,)), CONFIG)
    with pytest.raises(ValueError, match="core is 'gru'"):
        MemeNetwork(SPEC, DiscreteActions(A), NetworkConfig(torso="mlp", core="gru"))
    with pytest.raises(ValueError, match="num_mixtures is 0"):
        MemeNetwork(SPEC, DiscreteActions(A), NetworkConfig(torso="mlp", num_mixtures=0))
