import math

import numpy as np
import pytest
import torch
from oracles import returns as oracle

from softcount.agents.returns import lambda_returns, rescale, soft_watkins_returns, unrescale

T, B, N, A = 9, 5, 3, 4
DISCOUNT = torch.tensor([0.99, 0.9, 0.5])


def make_rows(seed):
    """Random rows with time limits, terminal ends and a cut without a last row."""
    g = torch.Generator().manual_seed(seed)
    q = torch.randn(T + 1, B, N, A, generator=g, dtype=torch.float64)
    is_last = torch.rand(T + 1, B, generator=g) < 0.25
    is_terminal = is_last & (torch.rand(T + 1, B, generator=g) < 0.5)
    is_first = torch.zeros_like(is_last)
    is_first[1:] = is_last[:-1]
    is_first[4, 0] = True  # an environment that was restarted: its row 3 is not last
    is_last[3, 0] = is_terminal[3, 0] = False
    return {
        "q": q,
        "values": unrescale(q),
        "action": torch.randint(A, (T + 1, B), generator=g),
        "policy": torch.softmax(3 * torch.randn(T + 1, B, N, A, generator=g, dtype=torch.float64), -1),
        "reward": torch.randn(T + 1, B, N, generator=g, dtype=torch.float64),
        "discount": DISCOUNT.double(),
        "is_first": is_first,
        "is_last": is_last,
        "is_terminal": is_terminal,
        "behaviour_prob": 0.05 + 0.95 * torch.rand(T + 1, B, generator=g, dtype=torch.float64),
    }


def oracle_rows(rows, b, j):
    pick = lambda name, t: rows[name][t, b].item()  # noqa: E731
    return [
        {
            "q": rows["q"][t, b, j].tolist(),
            "values": rows["values"][t, b, j].tolist(),
            "policy": rows["policy"][t, b, j].tolist(),
            "action": pick("action", t),
            "mu": pick("behaviour_prob", t),
            "reward": rows["reward"][t, b, j].item(),
            "first": pick("is_first", t),
            "last": pick("is_last", t),
            "terminal": pick("is_terminal", t),
        }
        for t in range(T + 1)
    ]


@pytest.mark.parametrize("form", ["soft", "watkins", "peng", "retrace"])
@pytest.mark.parametrize("seed", range(4))
def test_every_form_equals_its_definition_row_by_row(form, seed):
    rows = make_rows(seed)
    found = soft_watkins_returns(**rows, form=form, trace_discount=0.9, tolerance=0.3)
    num = 0
    for b in range(B):
        for j in range(N):
            expected = oracle.returns(oracle_rows(rows, b, j), DISCOUNT.double()[j].item(), 0.9, 0.3, form)
            for t in range(T):
                if expected[t] is not None:
                    num += 1
                    assert found[t, b, j].item() == pytest.approx(expected[t], rel=1e-9, abs=1e-9), (t, b, j)
    assert num > 60


def test_forms_differ_from_each_other():
    rows = make_rows(0)
    found = [
        soft_watkins_returns(**rows, form=f, tolerance=0.3) for f in ("soft", "watkins", "peng", "retrace")
    ]
    for i in range(4):
        for j in range(i):
            assert (found[i] - found[j]).abs().max() > 0.1


def test_watkins_is_soft_without_tolerance_under_a_greedy_policy():
    rows = make_rows(1)
    greedy = torch.nn.functional.one_hot(rows["q"].argmax(-1), A).double()
    soft = soft_watkins_returns(**(rows | {"policy": greedy}), form="soft", tolerance=0.0)
    torch.testing.assert_close(soft, soft_watkins_returns(**rows, form="watkins"))


def test_peng_is_soft_with_boundless_tolerance():
    rows = make_rows(2)
    rows["q"] = rows["q"].abs() + 0.1
    soft = soft_watkins_returns(**rows, form="soft", tolerance=1.0)
    torch.testing.assert_close(soft, soft_watkins_returns(**rows, form="peng"))


def test_a_time_limit_bootstraps_from_its_own_last_row_and_a_terminal_row_does_not():
    rows = make_rows(3)
    rows["is_first"][:] = rows["is_last"][:] = rows["is_terminal"][:] = False
    rows["is_last"][3, :] = True
    rows["is_first"][4, :] = True
    value = (rows["policy"] * rows["values"]).sum(-1)
    limit = soft_watkins_returns(**rows)
    torch.testing.assert_close(limit[2], rows["reward"][3] + rows["discount"] * value[3])
    rows["is_terminal"][3, :] = True
    torch.testing.assert_close(soft_watkins_returns(**rows)[2], rows["reward"][3])


def test_returns_do_not_look_past_an_episode_end():
    rows = make_rows(3)
    rows["is_first"][:] = rows["is_last"][:] = rows["is_terminal"][:] = False
    rows["is_last"][4, :] = True
    rows["is_first"][5, :] = True
    before = soft_watkins_returns(**rows)
    rows["reward"][5:] += 100
    rows["q"] = rows["q"].clone()
    rows["values"][5:] += 100
    after = soft_watkins_returns(**rows)
    torch.testing.assert_close(before[:4], after[:4])
    assert (before[5:] - after[5:]).abs().min() > 1


def test_a_hand_computed_return():
    value = torch.tensor([[[1.0]], [[2.0]]])
    found = lambda_returns(
        torch.tensor([[[10.0]], [[20.0]]]), torch.tensor([0.5]), value, torch.full((2, 1, 1), 0.8)
    )
    # G_1 = 20 + 0.5·2 = 21; G_0 = 10 + 0.5·(1 + 0.8·(21 − 1)) = 18.5
    assert found.flatten().tolist() == [18.5, 21.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rescaling_and_its_inverse_are_exact_from_millionths_to_millions(dtype):
    x = torch.tensor([s * m * 10.0**e for s in (1, -1) for m in (1, 3.7) for e in range(-6, 7)], dtype=dtype)
    tolerance = 4e-7 if dtype == torch.float32 else 1e-14
    assert ((unrescale(rescale(x)) - x).abs() / x.abs()).max() < tolerance
    expected = torch.tensor([oracle.h(v, 1e-3) for v in x.tolist()], dtype=dtype)
    assert ((rescale(x) - expected).abs() / expected.abs()).max() < (4e-7 if dtype == torch.float32 else 1e-9)


def test_rescaling_has_known_values_and_is_odd():
    assert rescale(torch.tensor(3.0)).item() == pytest.approx(1.003)
    assert rescale(torch.tensor(-8.0)).item() == pytest.approx(-2.008)
    assert unrescale(torch.tensor(0.0)).item() == 0
    assert rescale(torch.tensor(99.0), epsilon=0.01).item() == pytest.approx(9.99)


def test_rescaling_is_smooth_at_zero():
    x = torch.zeros(1, requires_grad=True)
    rescale(x).backward()
    assert x.grad.item() == pytest.approx(0.501)
    x.grad = None
    unrescale(x).backward()
    assert x.grad.item() == pytest.approx(1 / 0.501, rel=1e-5)


def test_an_unknown_form_and_a_missing_behaviour_are_named():
    rows = make_rows(0)
    with pytest.raises(ValueError, match="'lambda'; expected 'soft'"):
        soft_watkins_returns(**rows, form="lambda")
    with pytest.raises(ValueError, match="behaviour_prob"):
        soft_watkins_returns(**(rows | {"behaviour_prob": None}), form="retrace")


def test_the_oracles_inverse_is_the_published_one():
    for x in np.linspace(-50, 50, 21):
        assert oracle.h(oracle.h_inverse(x, 1e-3), 1e-3) == pytest.approx(x, abs=1e-9)
    assert math.isclose(oracle.h(3.0, 0.0), 1.0)
