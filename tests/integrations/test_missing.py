"""What is said where an optional library is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = "import sys; sys.modules[{missing!r}] = None\nimport {module}"


@pytest.mark.parametrize(
    ("missing", "module", "says"),
    [
        ("torch", "softcount.integrations", 'needs torch: `pip install ".[torch,envs]"`'),
        ("gymnasium", "softcount.integrations", 'needs gymnasium: `pip install ".[torch,envs]"`'),
        ("stable_baselines3", "softcount.integrations.sb3", 'pip install ".[sb3]"'),
        ("torchrl", "softcount.integrations.torchrl", 'pip install ".[torchrl]"'),
    ],
)
def test_the_error_names_the_extra_to_install(missing, module, says):
    code = WITHOUT.format(missing=missing, module=module)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.returncode != 0
    assert says in result.stderr


def test_the_bonuses_need_neither_torch_nor_gymnasium():
    code = "import sys; sys.modules['torch'] = sys.modules['gymnasium'] = None\nimport softcount.bonuses"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0
