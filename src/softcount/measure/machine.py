"""What a result was measured on: numbers of learned things differ between CPU models, clocks more so."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import torch


def machine() -> str:
    """Names processor, cores, Python and PyTorch."""
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    return f"{processor()}, {os.cpu_count()} cores, {versions}"


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Returns the processor's model where the system tells it, else its architecture."""
    lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
