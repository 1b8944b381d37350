"""Every finding has a smallest input, whose text states place, fault and fix."""

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from generation.samples import FOLDER, FindingSample, finding_samples, validated

from snaploom.errors import problems
from snaploom.models.findings import Finding

SAMPLES = finding_samples()
OF_FILES = {"SL101", "SL102", "SL103", "SL104", "SL106", "SL119"}
"""Faults of a file as such: there is no resource, nor a field of one."""
OF_REQUESTS = {"SL123", "SL124", "SL191"}
"""What was typed; the name of the resource is what is wrong."""
OF_TEXT = {*OF_FILES, *OF_REQUESTS, "SL105", "SL192"}
"""Inputs that are no YAML, or no matter of YAML: nothing can be taken out of a parsed form."""
EMPTY_WORDS = ("follow the message", "as the message states", "correct the place that is named")
every_code = pytest.mark.parametrize("code", sorted(SAMPLES))


def of_code(sample: FindingSample) -> list[Finding]:
    return [finding for finding in sample.findings if finding.code == sample.code]


def test_every_code_has_an_input_and_every_input_is_of_a_code() -> None:
    assert SAMPLES.keys() == {name for name, problem in problems().items() if problem.severity}
    shown = {sample.file for sample in SAMPLES.values() if sample.file}
    assert shown == set(FOLDER.iterdir())


@every_code
def test_smallest_input_causes_its_finding_once_and_no_other_error(code: str) -> None:
    sample = SAMPLES[code]
    assert len(of_code(sample)) == 1, sample.printed
    assert [f.code for f in sample.findings if f.is_error and f.code != code] == [], sample.printed


@every_code
def test_text_states_place_found_expected_and_fix(code: str) -> None:
    [finding] = of_code(SAMPLES[code])
    assert finding.resource or code in OF_FILES | OF_REQUESTS
    assert finding.path or code in OF_FILES | OF_REQUESTS
    assert finding.file or code in {"SL119", *OF_REQUESTS}
    assert finding.message
    assert finding.found
    assert finding.expected
    assert finding.hint
    assert finding.hint not in (finding.message, finding.expected)
    assert not [words for words in EMPTY_WORDS if words in finding.hint.casefold()]


@every_code
def test_nothing_can_be_left_out_of_a_smallest_input(code: str, tmp_path: Path) -> None:
    sample = SAMPLES[code]
    if code in OF_TEXT or sample.file is None:
        return
    documents = list(yaml.safe_load_all(sample.text))
    for what, smaller in without_one(documents):
        file = tmp_path / "smaller.yaml"
        file.write_text(yaml.safe_dump_all(smaller, sort_keys=False), "utf-8")
        found = list(map(words, validated(file, code)))
        assert found != list(map(words, sample.findings)), f"without {what}"


def words(finding: Finding) -> tuple[str, ...]:
    texts = (finding.code, finding.resource, finding.path, finding.message)
    return (*texts, finding.found, finding.expected, finding.hint)


def without_one(documents: list[object]) -> Iterator[tuple[str, list[object]]]:
    """Documents without one entry of a mapping or of a list; what is left is as it was."""
    for path in paths_of(documents):
        smaller = copy.deepcopy(documents)
        above: object = smaller
        for step in path[:-1]:
            above = above[step]  # type: ignore[index]
        del above[path[-1]]  # type: ignore[attr-defined]
        yield ".".join(map(str, path)), smaller


def paths_of(value: object) -> Iterator[tuple[str | int, ...]]:
    entries: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        entries = list(value.items())
    elif isinstance(value, list):
        entries = list(enumerate(value))
    for key, inner in entries:
        yield (key,)
        yield from ((key, *below) for below in paths_of(inner))
