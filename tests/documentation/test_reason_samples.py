"""Every reason has a sample, whose text is the program's and has a fix."""

from __future__ import annotations

import ast
import os
import re
from functools import cache
from pathlib import Path

import pytest
import yaml
from generation import samples
from generation.errorclasses import OPERATOR, errors
from generation.reasonsamples import ReasonSample, reason_samples, shown
from support.declared.raisesites import sites
from support.declared.reasoncauses import CAUSES, caused
from support.documentation.pages import DOCS

from snaploom_operator.conditions import EVERY_REMEDY

UPDATE = "SNAPLOOM_UPDATE_SAMPLES"
"""Set it to write the texts that the program gives, instead of comparing them."""
ROOT = DOCS.parent
SAMPLES = reason_samples()
ERRORS = [*errors(), *errors(OPERATOR)]
FAMILIES = {"SourceFailed", "OperatorFailed"}
"""Reasons of classes that only others are made of."""
OF_WORDS = {"Failed", "ClusterFailed", "ObjectMissing", "ObjectExists", "ObjectChanged"} | {
    *("ObjectRefused", "NamespaceTerminating", "NotAllowed", "ResourceUnknown", "WatchExpired"),
    *("TooManyRequests", "ApiUnavailable"),
}
"""Errors whose messages by Spark or the API server state what was found and expected."""
OF_EVENTS = {
    *("Interrupted", "SparkStopped", "UnexpectedFault", "LeaseNotObtained", "LeaseUnavailable"),
    *("FolderRemoved", "RunRevoked", "CommitOutcomeUnknown", "IndexCommitUnknown", "IndexBusy"),
    *("IndexOwned", "IndexNotFound", "UrlNotAllowed"),
}
"""What happened to a run: nothing was given that could be other than expected."""
EMPTY_WORDS = (
    "follow the message",
    "message states",
    "message has its words",
    "in the reference of",
)
every_reason = pytest.mark.parametrize("reason", sorted(SAMPLES))


def test_every_reason_has_a_sample_and_every_sample_is_of_a_reason() -> None:
    assert SAMPLES.keys() == {error.reason for error in ERRORS}
    assert {sample.reason for sample in SAMPLES.values() if not sample.text} == FAMILIES


def test_families_of_reasons_are_raised_as_one_of_their_members() -> None:
    assert not [site.place for site in sites() if site.error.reason in FAMILIES]


@pytest.mark.parametrize("reason", sorted(CAUSES))
def test_text_is_what_the_program_shows(reason: str, tmp_path: Path) -> None:
    error = caused(reason, tmp_path)
    assert error.reason == reason
    text = shown(error).replace(str(tmp_path), "/data").replace(f"{samples.FOLDER}/", "")
    if os.environ.get(UPDATE):
        write(SAMPLES[reason], text)
        return
    assert SAMPLES[reason].text == text, f"{UPDATE}=1 writes it anew; then `make generate`"
    assert not SAMPLES[reason].test


@pytest.mark.parametrize("reason", sorted(SAMPLES.keys() - CAUSES.keys() - FAMILIES))
def test_reason_that_is_not_caused_here_is_caused_by_the_test_that_is_named(reason: str) -> None:
    path, _, name = SAMPLES[reason].test.partition("::")
    assert name in source_of_tests(path), f"{SAMPLES[reason].test}: there is no such test"
    names = {reason, *(error.name for error in ERRORS if error.reason == reason)}
    assert any(re.search(rf"\b{word}\b", source_of_tests(path)[name]) for word in names)


@pytest.mark.parametrize("reason", sorted(SAMPLES.keys() - CAUSES.keys() - FAMILIES))
def test_text_is_one_that_the_source_can_make(reason: str) -> None:
    lines = lines_of(SAMPLES[reason].text)
    of_reason = [site for site in sites() if site.error.reason == reason]
    assert any(site.fits(lines) for site in of_reason), [site.place for site in of_reason]


@every_reason
def test_text_states_found_expected_and_fix(reason: str) -> None:
    lines = lines_of(SAMPLES[reason].text)
    if reason in FAMILIES:
        return
    assert lines["message"]
    assert lines["hint"]
    if reason not in OF_WORDS | OF_EVENTS | {"Invalid", "NoUniqueJoinTree"}:
        assert lines["found"]
        assert lines["expected"]
    assert not [words for words in EMPTY_WORDS if words in lines["hint"].casefold()]


def test_every_error_has_a_fix() -> None:
    of_findings = {"InvalidDeclarations", "NoUniqueJoinTree"}
    with_their_own = {"DeclarationNotPossible", "TooManyRequests"}
    left = (site for site in sites() if site.error.name not in of_findings | with_their_own)
    assert not [site.place for site in left if "hint" not in site.shown], "name it, as `hint`"


@pytest.mark.parametrize("reason", sorted(EVERY_REMEDY))
def test_no_remedy_only_points_back_to_the_message(reason: str) -> None:
    fix = EVERY_REMEDY[reason].fix.casefold()
    assert not [words for words in EMPTY_WORDS if words in fix]


@cache
def source_of_tests(path: str) -> dict[str, str]:
    """The source of each test of a file, with the values that it is given, by name."""
    text = (ROOT / path).read_text("utf-8")
    return {
        node.name: text if node.decorator_list else ast.unparse(node)
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def lines_of(text: str) -> dict[str, str]:
    """The message, and what follows each label."""
    _, _, body = text.partition("\n")
    message, *labelled = re.split(r"\n  (found|expected|fix): +", f"\n{body.rstrip()}")
    labels = dict(zip(labelled[::2], labelled[1::2], strict=True))
    if "fix" in labels:
        labels["hint"] = labels.pop("fix")
    return {"message": message.strip(), **labels}


def write(sample: ReasonSample, text: str) -> None:
    """Put a text into the file of a sample."""
    written = yaml.safe_load(sample.file.read_text("utf-8"))
    written[sample.reason]["text"] = text
    text = yaml.dump(written, Dumper=_Blocks, sort_keys=False, width=10**6, allow_unicode=True)
    sample.file.write_text(text, "utf-8")


class _Blocks(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


_Blocks.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    ),
)
