"""A cluster of these tests alone, with a token of its own; Ray reads where it lies when it is imported."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

TOKEN = Path(tempfile.mkdtemp()) / "token"
TOKEN.touch(mode=0o600)
TOKEN.write_text(secrets.token_hex(32))
os.environ["RAY_AUTH_MODE"] = "token"
os.environ["RAY_AUTH_TOKEN_PATH"] = str(TOKEN)
