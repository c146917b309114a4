"""The losses against numbers made beforehand by an independent program, gradients included."""

import json
from pathlib import Path

import pytest
import torch

from softcount.agents.distributions import Categoricals, DiagonalGaussian, GaussianConfig
from softcount.agents.popart import PopArtConfig, Statistics, art, pop
from softcount.agents.vmpo.agent import Duals
from softcount.agents.vmpo.loss import (
    Episodes,
    LossConfig,
    Terms,
    kl_penalty,
    policy_loss,
    returns_of,
    temperature_loss,
    top_half,
    vmpo_loss,
)
from softcount.types import ContinuousActions

CASES = json.loads((Path(__file__).parent / "vectors.json").read_text())["cases"]
DISCRETE = ["discrete", "discrete_masked", "ties_all_equal", "ties_at_the_threshold"]
GAUSSIAN = ["gaussian", "gaussian_per_dimension"]


def numbers(content, requires_grad=False):
    return torch.tensor(content, dtype=torch.float64, requires_grad=requires_grad)


def close(found, expected):
    expected = torch.as_tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(found.detach().double(), expected, rtol=1e-9, atol=1e-9)


def read(name):
    case = CASES[name]
    return case["inputs"], case["expected"]


def test_all_fourteen_are_here():
    assert len(CASES) == 14


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    given, expected = read(name)
    logits = numbers(given["logits"], True)
    eta, alpha = numbers(given["temperature"], True), numbers([given["alpha"]], True)
    is_valid = torch.tensor(given["valid"])
    distribution = Categoricals((3,), is_scalar=True)
    log_prob = distribution.log_prob(logits, torch.tensor(given["action"]))
    distances = distribution.distances(numbers(given["logits_behaviour"]), logits)
    close(log_prob, expected["log_prob"])
    close(distances["kl"][:, 0], expected["kl"])
    config = LossConfig(
        temperature_limit=given["eps_eta"], kl_limit=given["eps_alpha"], top_fraction=given["top_fraction"]
    )
    nothing = torch.zeros(len(is_valid), dtype=torch.float64)
    terms = Terms(
        nothing, nothing, numbers(given["advantage"]), log_prob, distances, is_valid, nothing.long()
    )
    losses, psi = vmpo_loss(terms, eta, {"kl": alpha}, config)
    assert (psi > 0).tolist() == expected["chosen"]
    close(psi, expected["psi"])
    close(losses["policy"], expected["policy_loss"])
    close(losses["temperature"], expected["temperature_loss"])
    close(losses["kl_penalty"], expected["kl_penalty"] + expected["alpha_loss"])
    close(sum(losses.values()), expected["total"])
    sum(losses.values()).backward()
    close(logits.grad, expected["logits_grad"])
    close(eta.grad, expected["temperature_grad"])
    close(alpha.grad[0], expected["alpha_grad"])


@pytest.mark.parametrize("name", GAUSSIAN)
def test_gaussian(name):
    given, expected = read(name)
    mean, std = numbers(given["mean"], True), numbers(given["std"], True)
    eta = numbers(given["temperature"], True)
    alphas = {key: numbers(given[f"alpha_{key}"], True) for key in ("mean", "cov")}
    config = GaussianConfig(per_dimension=given["per_dimension"])
    distribution = DiagonalGaussian(ContinuousActions((-1.0, -1.0), (1.0, 1.0)), config)
    policy = torch.cat((mean, std), -1)
    behaviour = torch.cat((numbers(given["mean_behaviour"]), numbers(given["std_behaviour"])), -1)
    log_prob = distribution.log_prob(policy, numbers(given["action"]))
    distances = distribution.distances(behaviour, policy)
    close(log_prob, expected["log_prob"])
    for key, distance in distances.items():
        parts = numbers(expected[f"kl_{key}"])
        close(distance, parts if given["per_dimension"] else parts.sum(-1, keepdim=True))
    is_valid = torch.tensor(given["valid"])
    limits = LossConfig(
        temperature_limit=given["eps_eta"], mean_limit=given["eps_mean"], cov_limit=given["eps_cov"]
    )
    nothing = torch.zeros(len(is_valid), dtype=torch.float64)
    terms = Terms(
        nothing, nothing, numbers(given["advantage"]), log_prob, distances, is_valid, nothing.long()
    )
    num = distribution.num_distances["mean"]
    losses, psi = vmpo_loss(terms, eta, {key: alpha.expand(num) for key, alpha in alphas.items()}, limits)
    close(psi, expected["psi"])
    close(losses["policy"], expected["policy_loss"])
    close(losses["temperature"], expected["temperature_loss"])
    for key in ("mean", "cov"):
        close(losses[f"{key}_penalty"], expected[f"{key}_penalty"] + expected[f"alpha_{key}_loss"])
    close(sum(losses.values()), expected["total"])
    sum(losses.values()).backward()
    close(mean.grad, expected["mean_grad"])
    close(std.grad, expected["std_grad"])
    close(eta.grad, expected["temperature_grad"])
    for key, alpha in alphas.items():
        close(alpha.grad, expected[f"alpha_{key}_grad"])


@pytest.mark.parametrize("name", ["very_negative_advantages", "tiny_temperature"])
def test_the_temperatures_loss_keeps_its_digits(name):
    given, expected = read(name)
    advantage, eta = numbers(given["advantage"]), numbers(given["temperature"], True)
    is_chosen = top_half(advantage, torch.tensor(given["valid"]))
    assert is_chosen.tolist() == expected["chosen"]
    loss, psi = temperature_loss(advantage, is_chosen, eta, given["eps_eta"])
    loss.backward()
    close(psi, expected["psi"])
    close(loss, expected["temperature_loss"])
    close(eta.grad, expected["temperature_grad"])


def test_rows_that_are_not_chosen_do_not_enter_the_normalisation():
    given, expected = read("very_negative_advantages")
    advantage = numbers([*given["advantage"], 0.0])
    is_chosen = torch.tensor([*expected["chosen"], False])
    loss, psi = temperature_loss(advantage, is_chosen, numbers(given["temperature"]), given["eps_eta"])
    close(psi, [*expected["psi"], 0.0])
    close(loss, expected["temperature_loss"])


@pytest.mark.parametrize("limit", [0.5, 0.1, 0.01])
def test_where_the_weights_are_as_far_from_uniform_as_allowed_the_temperature_rests(limit):
    given, expected = read("optimal_temperature")
    expected = expected[f"eps_{limit}"]
    advantage, eta = numbers(given["advantage"]), numbers(expected["temperature"], True)
    is_chosen = top_half(advantage, torch.ones(len(advantage), dtype=torch.bool), given["top_fraction"])
    loss, psi = temperature_loss(advantage, is_chosen, eta, limit)
    loss.backward()
    close(eta.grad, 0.0)
    close(1 / psi.square().sum(), expected["effective_samples"])


def statistics_of(given):
    mean, second = numbers(given["shift"]), numbers(given["second_moment"])
    return Statistics(mean, second, numbers(given["scale"]) if "scale" in given else torch.ones_like(mean))


def test_popart():
    given, expected = read("popart")
    old = statistics_of(given)
    targets, task = numbers(given["targets"]), torch.tensor(given["tasks"])
    config = PopArtConfig(step=given["step"], scale_least=given["lower"], scale_most=given["upper"])
    new = art(old, targets, task, torch.ones(len(task), dtype=torch.bool), config)
    close(new.mean, expected["shift"])
    close(new.second, expected["second_moment"])
    close(new.scale, expected["scale"])
    weight, bias = pop(numbers(given["w"]).T, numbers(given["b"]), old, new)
    close(weight.T, expected["w"])
    close(bias, expected["b"])
    close(new.scale * (weight @ numbers(given["probe"]) + bias) + new.mean, expected["probe_value"])


def test_popart_of_many_targets_does_not_overshoot():
    given, expected = read("popart_many")
    targets = torch.ones(3840, dtype=torch.float64)
    config = PopArtConfig(step=given["step"], scale_least=given["lower"], scale_most=given["upper"])
    new = art(statistics_of(given), targets, targets.long() * 0, targets > 0, config)
    close(new.mean, expected["shift"])
    close(new.second, expected["second_moment"])
    close(new.scale, expected["scale"])


@pytest.mark.parametrize("trace", ["1.0", "0.95"])
def test_returns_of_packed_episodes(trace):
    given, expected = read("returns_packed")
    columns = {key: torch.tensor(given[key])[:, None] for key in ("is_first", "is_last", "is_terminal")}
    value = numbers(given["value"])[:, None]
    config = LossConfig(discount=given["discount"], trace_discount=float(trace))
    found = returns_of(numbers(given["reward_of_arrival"])[:, None], value, Episodes(**columns), config)
    is_valid = torch.tensor(expected[trace]["valid"])
    close(found[:, 0][is_valid], numbers(expected[trace]["returns"])[is_valid])
    close((found - value[:-1])[:, 0][is_valid], numbers(expected[trace]["advantages"])[is_valid])


def test_returns_within_an_episode():
    given, expected = read("returns_plain")
    value = numbers(given["value"])[:, None]
    nowhere = torch.zeros(value.shape, dtype=torch.bool)
    episodes = Episodes(nowhere, nowhere, nowhere)
    config = LossConfig(discount=given["discount"])
    found = returns_of(numbers(given["reward_of_arrival"])[:, None], value, episodes, config)
    close(found[:, 0], expected["returns"])
    close((found - value[:-1])[:, 0], expected["advantages"])


@pytest.mark.parametrize(("kl", "after"), [(0.5, "alpha_after"), (0.0, "alpha_after_if_kl_is_0")])
def test_a_multiplier_at_its_floor_can_return(kl, after):
    given, expected = read("dual_projection")
    duals = Duals({"kl": 1}, LossConfig(kl_multiplier_start=given["alpha"]))
    alpha = duals.multipliers["kl"]
    loss = kl_penalty(numbers([[kl]]), torch.tensor([True]), alpha, given["eps_alpha"])
    loss.backward()
    if kl:
        close(alpha.grad[0], expected["alpha_grad"])
    with torch.no_grad():
        alpha -= given["sgd_learning_rate"] * alpha.grad
    duals.project()
    close(alpha[0], expected[after])


def test_rows_without_weight_do_not_enter_the_policys_loss_even_where_impossible():
    loss = policy_loss(torch.tensor([-1.0, -torch.inf]), torch.tensor([1.0, 0.0], dtype=torch.float64))
    assert loss == 1.0
