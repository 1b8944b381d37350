"""The version of this installation, as its package has it."""

from __future__ import annotations

from importlib.metadata import version

VERSION = version("snaploom")
"""Written into Reports, manifests and metrics."""
