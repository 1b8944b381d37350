"""Tests that run apart: their mark's description in `pyproject.toml` begins with "apart"."""

import re
from functools import cache
from pathlib import Path

import pytest


@cache
def marks(config: pytest.Config) -> frozenset[str]:
    """Names of the marks of tests that run apart."""
    lines: list[str] = config.getini("markers")
    return frozenset(line.partition(":")[0] for line in lines if ": apart, " in line)


def is_asked_for(item: pytest.Item) -> bool:
    """Whether `-m` names the mark of a test that runs apart, or the command line its file."""
    apart = marks(item.config).intersection(mark.name for mark in item.iter_markers())
    asked = set(re.findall(r"\w+", item.config.option.markexpr))
    return not apart or bool(apart & asked) or item.path in _named_files(item.config)


@cache
def _named_files(config: pytest.Config) -> frozenset[Path]:
    names = (argument.partition("::")[0] for argument in config.args)
    return frozenset((config.invocation_params.dir / name).resolve() for name in names)
