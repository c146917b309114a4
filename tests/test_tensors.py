import numpy as np
import pytest
import torch
from torch import nn

from softcount import store
from softcount.tensors import (
    load_module,
    load_optimiser,
    module_state,
    optimiser_state,
    to_arrays,
    to_tensors,
)


def test_trees_keep_their_shape_and_share_memory():
    tree = {"a": np.zeros(3, np.float32), "b": (np.arange(2), None)}
    tensors = to_tensors(tree)
    tensors["a"][1] = 5
    assert tree["a"].tolist() == [0, 5, 0]
    assert isinstance(tensors["b"], tuple)
    assert tensors["b"][1] is None
    back = to_arrays(tensors)
    assert back["a"] is not tree["a"]
    assert np.shares_memory(back["a"], tree["a"])
    assert not np.shares_memory(to_arrays(tensors, copy=True)["a"], tree["a"])


def test_read_only_arrays_are_copied_not_exposed():
    frozen = np.frombuffer(b"abcd", np.uint8)
    tensor = to_tensors(frozen)
    tensor[0] = 0
    assert frozen[0] == ord("a")


def test_module_and_optimiser_are_restored_through_a_file(tmp_path):
    def make():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
        return module, torch.optim.AdamW(module.parameters(), lr=0.1, fused=True)

    def train(module, optimiser, num):
        for n in range(num):
            x = torch.linspace(-1, 1, 15).reshape(5, 3) + n
            optimiser.zero_grad()
            module(x).square().sum().backward()
            optimiser.step()

    module, optimiser = make()
    train(module, optimiser, 3)
    state = {"module": module_state(module, copy=True), "optimiser": optimiser_state(optimiser)}
    store.save(tmp_path / "state.safetensors", state, kind="test")
    train(module, optimiser, 2)
    other, other_optimiser = make()
    state = store.load(tmp_path / "state.safetensors", kind="test")
    load_module(other, state["module"])
    load_optimiser(other_optimiser, state["optimiser"])
    train(other, other_optimiser, 2)
    for name, array in module_state(module).items():
        np.testing.assert_array_equal(array, module_state(other)[name])


def test_a_module_of_another_shape_is_refused():
    with pytest.raises(RuntimeError, match="size mismatch"):
        load_module(nn.Linear(3, 4), module_state(nn.Linear(3, 5)))


def test_modules_take_copies_of_arrays_and_refuse_what_does_not_fit():
    module = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    weight = module[0].weight
    state = module_state(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)), copy=True)
    state["1.running_mean"] += 4
    load_module(module, state)
    assert module[0].weight is weight
    for name, array in module_state(module).items():
        np.testing.assert_array_equal(array, state[name])
        assert not np.shares_memory(array, state[name])
    row = {**state, "0.weight": state["0.weight"][:1]}  # would broadcast
    with pytest.raises(RuntimeError, match=r"size mismatch for 0\.weight"):
        load_module(module, row)
    with pytest.raises(RuntimeError, match=r"Missing key.*1\.running_mean"):
        load_module(module, {name: array for name, array in state.items() if name != "1.running_mean"})
    np.testing.assert_array_equal(weight.detach().numpy(), state["0.weight"])
