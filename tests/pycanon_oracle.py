"""pycanon, from the folder that `make test` installs it into: it is not among what the tests depend on.

Its functions need numpy and pandas alone, and run on the releases that users have.
"""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(sys.prefix) / "oracle"
if not (FOLDER / "pycanon").is_dir():
    raise ImportError(f"there is no pycanon in {FOLDER}: run make lint, which installs it there")
sys.path.append(str(FOLDER))

from pycanon import anonymity  # noqa: E402

__all__ = ["anonymity"]
