"""Loading and validation of any file end in findings, never in an exception."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support.declared.declarations import complex_, document, model, simple
from support.runner.quick import examples

from snaploom.loading.load import load
from snaploom.validate.validator import validate

SOUND = [
    *model(),
    simple("v", "SELECT a, count(*) FROM c WHERE b > 1 GROUP BY a"),
    complex_("w", "SELECT * FROM c0 WHERE t < {{ SNAPSHOT | UNIX_SECONDS }}", "customer"),
    document(
        "FieldTransformer",
        "t",
        {"transformers": [{"rename": {"to": "x"}, "selectors": [{"metadata": {"a": "b"}}]}]},
    ),
]
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
JUNK: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 1.5, "", " ", "x", "{{", "{a:STRING}", "../", "SELECT (", "[", "\\",
    "a.b.c", "(" * 500, [], {}, [[]], [None], {"": ""}, {"a": {"b": []}}, "\U0001f600", "\x07",
    "UTC", "0 0 * * *", "2020-01-01T00:00:00Z", "/", "s3://", "data", "customer", "$9", "*", "'",
)  # fmt: skip
PIECES = st.sampled_from(
    [*"\t\n :-[]{},&*!|>'\"%@`#?~<", "a", "1", "---\n", "<<: ", "&a ", "*a", "\\u", "\x00", "é",
     "kind: ", "apiVersion: snaploom.io/v1alpha1\n", "spec:\n", "  "]
)  # fmt: skip


def check(text: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.yaml"
        path.write_bytes(text)
        loaded = load([path])
    findings = (*loaded.findings, *loaded.placed(validate(loaded.resources, broken=loaded.broken)))
    for finding in findings:
        assert finding.message
        assert finding.line >= 1 or finding.code in ("SL103", "SL119")


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_random_bytes_give_findings(raw: bytes) -> None:
    check(raw)


@given(st.lists(PIECES, max_size=60).map("".join))
@settings(deadline=None)
def test_random_yaml_gives_findings(text: str) -> None:
    check(text.encode())


@pytest.mark.slow
@given(st.integers(0, 2**32))
@settings(max_examples=examples(150), deadline=None)
def test_spoilt_declarations_give_findings(seed: int) -> None:
    chance = random.Random(seed)
    documents = copy.deepcopy(SOUND)
    for _ in range(chance.randint(1, 4)):
        spoil(chance.choice(documents), chance)
    check(yaml.dump_all(documents, Dumper=DUMPER).encode())


def spoil(raw: Any, chance: random.Random) -> None:
    """Replace, remove, add or rename something somewhere."""
    while isinstance(raw, dict | list) and raw:
        steps = list(raw) if isinstance(raw, dict) else list(range(len(raw)))
        step = chance.choice(steps)
        if chance.random() < 0.2 or not isinstance(raw[step], dict | list):
            break
        raw = raw[step]
    else:
        return
    match chance.randint(0, 4):
        case 0:
            del raw[step]
        case 1 if isinstance(raw, dict):
            raw[f"{step}x"] = raw.pop(step)
        case 2 if isinstance(raw, list):
            raw.append(copy.deepcopy(raw[step]))
        case _:
            raw[step] = copy.deepcopy(chance.choice(JUNK))
