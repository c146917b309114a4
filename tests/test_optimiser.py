"""What decays, how gradients are shortened, and that the settings arrive in AdamW."""

import pytest
import torch
from torch import nn

from softcount.optimiser import OptimiserConfig, clip_gradients, make_optimiser, parameter_groups


class Net(nn.Module):
    never_decayed = ("table",)

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(3, 2)
        self.table = nn.Linear(2, 2, bias=False)
        self.gain = nn.Parameter(torch.ones(2, 2))
        self.frozen = nn.Parameter(torch.ones(2, 2), requires_grad=False)


def test_matrices_decay_and_biases_gains_and_what_says_never_do_not():
    net = Net()
    decayed, kept = parameter_groups(net, 0.1)
    assert decayed["weight_decay"] == 0.1
    assert kept["weight_decay"] == 0.0
    assert [id(p) for p in decayed["params"]] == [id(net.dense.weight)]
    assert {id(p) for p in kept["params"]} == {id(net.dense.bias), id(net.table.weight), id(net.gain)}


def test_a_group_without_parameters_is_left_out():
    (only,) = parameter_groups(nn.LayerNorm(3), 0.1)
    assert only["weight_decay"] == 0.0


def test_the_settings_are_adamws():
    config = OptimiserConfig(learning_rate=0.5, weight_decay=0.25, betas=(0.1, 0.2), epsilon=0.125)
    group, _ = make_optimiser(Net(), config).param_groups
    found = (group["lr"], group["weight_decay"], group["betas"], group["eps"])
    assert found == (0.5, 0.25, (0.1, 0.2), 0.125)


@pytest.mark.parametrize(("limit", "left"), [(None, 5.0), (10.0, 5.0), (2.5, 2.5)])
def test_a_gradient_is_shortened_as_a_whole_and_its_own_norm_returned(limit, left):
    one, two = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    one.grad, two.grad = torch.tensor([3.0]), torch.tensor([-4.0])
    norm = clip_gradients([one, two], OptimiserConfig(max_grad_norm=limit))
    assert float(norm) == pytest.approx(5.0)
    assert float(one.grad) == pytest.approx(3.0 * left / 5.0, rel=1e-5)
    assert float(two.grad) == pytest.approx(-4.0 * left / 5.0, rel=1e-5)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="learning_rate"):
        OptimiserConfig(learning_rate=-1.0)
