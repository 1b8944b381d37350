"""Packages of orchestrators, which lie in folders of their own."""

from __future__ import annotations

import subprocess

from support.documentation.examples import REPOSITORY


def orchestrators_folder(*name: str) -> str:
    """Where `.ci/orchestrators` has installed them, for PYTHONPATH."""
    script = [str(REPOSITORY / ".ci" / "orchestrators"), *name]
    return subprocess.run(script, check=True, capture_output=True, text=True).stdout.strip()
