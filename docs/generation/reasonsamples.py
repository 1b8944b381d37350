"""The smallest situation of each reason of an error, and the text that is shown then.

`docs/samples/reasons/*.yaml` have them by reason, in files as the remedies are. The texts are the
program's: tests/documentation/test_reason_samples.py causes each error, or another test that the
sample names.
"""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from snaploom.cli.console import print_error
from snaploom.errors import SnaploomError

FOLDER = Path(__file__).parents[1] / "samples" / "reasons"
"""Where the samples are."""


@dataclass(frozen=True)
class ReasonSample:
    """How a reason comes about, and what is shown."""

    reason: str
    """The reason."""
    file: Path
    """Where the sample stands."""
    cause: str
    """The smallest input or situation, as a sentence."""
    text: str = ""
    """What is shown; empty for a family of reasons, of which none is raised itself."""
    test: str = ""
    """`path::name` of the test that causes the error where it takes Spark or a server."""


@cache
def reason_samples() -> dict[str, ReasonSample]:
    """The samples, by reason."""
    found: dict[str, ReasonSample] = {}
    for file in sorted(FOLDER.glob("*.yaml")):
        for reason, sample in yaml.safe_load(file.read_text("utf-8")).items():
            assert reason not in found, f"{reason} has two samples"
            found[reason] = ReasonSample(reason, file, **sample)
    return found


def shown(error: SnaploomError) -> str:
    """What the command line prints of an error."""
    printed = io.StringIO()
    with redirect_stderr(printed):
        print_error(error)
    return printed.getvalue()
