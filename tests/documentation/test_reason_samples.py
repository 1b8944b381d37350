"""Every reason has a sample, whose text is the program's and has a fix."""

from __future__ import annotations

import ast
import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml
from generation import samples
from generation.errorclasses import OPERATOR, PACKAGE, ErrorClass, errors
from generation.reasonsamples import ReasonSample, reason_samples, shown
from kubernetes.config import ConfigException
from opensearchpy.exceptions import TransportError
from pyspark.sql import types as spark
from support.documentation.pages import DOCS
from support.storage.folders import START, a_run

from snaploom.cli.init import init
from snaploom.endpoints import bounded_body, origin_of
from snaploom.engine.schemachecks import MissingField
from snaploom.errors import SnaploomError, StorageError
from snaploom.files.cloud import store_error
from snaploom.files.local import LocalObjectStore
from snaploom.files.stores import open_store
from snaploom.models.allowances import NO_ALLOWANCES
from snaploom.models.common import EpochNanos, MissingMode, TimeOffset
from snaploom.models.datasource import Credentials
from snaploom.models.report import ExclusionReason
from snaploom.models.run import RunSettings
from snaploom.output.documents import ENTRY, HINT, parse_json, parse_versioned
from snaploom.output.entries import Claim
from snaploom.output.folder import open_folder
from snaploom.output.history import refuse_empty
from snaploom.output.manifest import ManifestLog
from snaploom.output.state import EMPTY, FolderState
from snaploom.output.versions import ReadChoice
from snaploom.plan.intervals import (
    Intervals,
    IntervalSet,
    IntervalSettings,
    SourceSnapshots,
    root_candidates,
)
from snaploom.plan.plan import PublishedState, plan_run
from snaploom.plan.steps import refuse_empty_root
from snaploom.plan.times import length_of
from snaploom.plan.tree import JoinNode
from snaploom.plugins.flint.client import translated
from snaploom.plugins.flint.store import open_opensearch_base
from snaploom.plugins.flint.values import written
from snaploom.policy.formatfaults import FormatPlace, require_format
from snaploom.project.results import Run, Runs
from snaploom.run.clusterobjects import ClusterLease
from snaploom.run.declarations import read_bundle_file, read_declarations, refuse, unstarted_report
from snaploom.run.joblog import Owner, RunIdentity
from snaploom.run.runevents import Interruption
from snaploom.run.session.spark import build_session
from snaploom.skipping.formats.parquetfiles import open_keys
from snaploom.skipping.indexes.base import index_type
from snaploom.skipping.stores.states import parse_state
from snaploom.sources.databases.connection import login_of
from snaploom.sources.port import not_listed
from snaploom.sources.transformers import check_schema
from snaploom.spark.failures import translate
from snaploom_operator.admission.request import parse_review
from snaploom_operator.cluster.requests import RequestTarget, failure_of
from snaploom_operator.conditions import EVERY_REMEDY
from snaploom_operator.settings import read_settings

Cause = Callable[[Path], object]
"""Raises the error, or returns it where the program's function does; given an empty folder."""

_PLACE = "s3a://lake/wide/snaploom.json"
_OWNER = Owner("OutputDataset", "wide", "shop")


def _not_unique(_folder: Path) -> None:
    declarations = read_declarations([samples.FOLDER / "SL301.yaml"])
    bundle = declarations.bundle(samples.OUTPUT)
    refuse(plan_run(bundle, {}, PublishedState(), EpochNanos(START)).findings)


def _root_empty(_folder: Path) -> None:
    declarations = read_declarations([samples.FOLDER / "SL307.yaml"])
    root = declarations.bundle(samples.OUTPUT).source(samples.ROOT)
    refuse_empty_root(root, SourceSnapshots())


def _too_many_candidates(_folder: Path) -> None:
    forever = SourceSnapshots(intervalset=IntervalSet.of([(-(2**62), 2**62)]))
    settings = IntervalSettings(Intervals(EpochNanos(START), length_of(TimeOffset(nano=1)), "UTC"))
    with patch("snaploom.plan.intervals.MOST_CANDIDATES", 100):
        root_candidates(settings, forever, [], EpochNanos(START + 10**6))


def _setting(_folder: Path) -> None:
    conf = {"spark.jars.packages": "org.example:sums:1.0"}
    build_session("snaploom", RunSettings.parse({"spark": {"sparkConf": conf}}))


def _interrupted(_folder: Path) -> None:
    interruption = Interruption()
    interruption.request()
    interruption.check()


def _no_lease(_folder: Path) -> None:
    def connect() -> object:
        raise ConfigException("Service host/port is not set.")

    identity = RunIdentity("wide-1", "uid", 1)
    clock = partial(EpochNanos, START)
    lease = ClusterLease("s3a://lake/wide/", _OWNER, identity, clock, connect)  # type: ignore[arg-type]
    lease.read()


def _full_folder(folder: Path) -> None:
    (folder / "notes.txt").write_text("x")
    init(folder)


def _field_missing(_folder: Path) -> SnaploomError:
    root = JoinNode(0, "", "orders", "", -1, "", 0)
    child = JoinNode(1, "customers", "customers", "", 0, "order-customer", 1)
    return MissingField(
        child,
        root,
        ExclusionReason.JOIN_FIELD_MISSING,
        MissingMode.ERROR,
        "customer_id",
        "columns order_id, amount",
        "customer_id",
    ).error()


def _two_names(_folder: Path) -> None:
    columns = spark.StructType().add("Id", "integer").add("id", "string")
    check_schema(columns, "DataSource/orders", "spec.hdfsLike")


def _login(_folder: Path) -> None:
    declared = {"fromEnvironment": {"userVariable": "DB_USER", "passwordVariable": "DB_PASSWORD"}}
    login_of(Credentials.parse(declared), {}, "DataSource/customers")


def _format(_folder: Path) -> None:
    place = FormatPlace("DataSource/orders", "spec.hdfsLike.format", "spec.hdfsLike.formatOptions")
    require_format("hive", {}, NO_ALLOWANCES, place)


def _local(folder: Path) -> LocalObjectStore:
    return LocalObjectStore(folder, create=True)


def _taken(folder: Path) -> None:
    _local(folder).put_if_absent("a", b"1")
    _local(folder).put_if_absent("a", b"2")


def _too_long(folder: Path) -> None:
    _local(folder).put("snaploom.json", b" " * 5000)
    _local(folder).get("snaploom.json", HINT.length)


def _link(folder: Path) -> None:
    (folder / "snaploom.json").symlink_to(folder / "another.json")
    _local(folder).get("snaploom.json")


def _in_a_file(folder: Path) -> None:
    (folder / "file").write_text("x")
    LocalObjectStore(folder / "file" / "wide", create=True)


def _contended(folder: Path) -> None:
    """Another writer takes every number between the look at the log and the write to it."""
    run = a_run()

    def claim(scope: str, state: FolderState) -> Claim:
        if scope == "slow":
            ManifestLog(_local(folder)).commit(partial(claim, "fast"))
        moment = EpochNanos(START)
        return Claim(
            seq=state.next_seq,
            run_id=run.run_id,
            written_at=moment,
            tool_version="0.0.0",
            scope=scope,
            seconds=60,
        )

    with patch("snaploom.output.documents.COMMIT_ATTEMPTS", 3):
        ManifestLog(_local(folder)).commit(partial(claim, "slow"))


def _stopped_run() -> Run:
    error = StorageError("the store does not answer", hint="run again")
    return Run(unstarted_report("wide", EpochNanos(START), error))


def _answer(text: str) -> Cause:
    return lambda _: store_error(OSError(text), _PLACE, "AWS_*", writing=False)


def _status(code: int, code_name: str, message: str) -> Cause:
    return _answer(
        f"Server returned non-2xx status code: {code}: <Error><Code>{code_name}</Code>"
        f"<Message>{message}</Message></Error>"
    )


def _api(verb: str, code: int, message: str, reason: str = "", **details: object) -> Cause:
    name = "wide" if verb != "create" else ""
    target = RequestTarget(verb, "outputdatasets", name)
    status = {"kind": "Status", "message": message, "reason": reason, "details": details}
    return lambda _: failure_of(target, code, json.dumps(status).encode(), None)


CAUSES: Mapping[str, Cause] = {
    # Runs as such.
    "Failed": lambda _: translate(RuntimeError("Job aborted: the disk of an executor is full")),
    "Invalid": lambda _: read_declarations([samples.FOLDER / "SL307.yaml"]).bundle("wdie"),
    "NoUniqueJoinTree": _not_unique,
    "TooManyCandidates": _too_many_candidates,
    "SettingNotAllowed": _setting,
    "Interrupted": _interrupted,
    "BundleUnreadable": lambda folder: read_bundle_file(folder / "bundle.json"),
    "LeaseUnavailable": _no_lease,
    "FolderNotUsable": _full_folder,
    # Sources.
    "FormatNotAllowed": _format,
    "SourceSchemaInvalid": _two_names,
    "SnapshotMissing": lambda _: not_listed("orders", EpochNanos(START)),
    "RootEmpty": _root_empty,
    "FieldMissing": _field_missing,
    "CredentialsRefused": _login,
    # Publication.
    "FolderNotOurs": lambda folder: open_folder(_local(folder)),
    "FolderNotWritable": _in_a_file,
    "ArgumentInvalid": lambda _: ReadChoice.parse(None, ("2024-02-01", "2024-01-01")),
    "RunFailed": lambda _: Runs((_stopped_run(),)).raise_for_failures(),
    "NothingPublished": lambda _: refuse_empty(EMPTY, "s3a://lake/wide/"),
    # Storage.
    "StorageFailed": _status(500, "InternalError", "We encountered an internal error."),
    "ObjectNotFound": lambda folder: _local(folder).get("metadata/manifest/1.json"),
    "ObjectAlreadyExists": _taken,
    "ObjectTooLarge": _too_long,
    "NotAPlainFile": _link,
    "EndpointRefused": lambda _: origin_of("ftp://keys/v1"),
    "AnswerTooLong": lambda _: bounded_body(io.BytesIO(b"12").read, 1, "keys:8200"),
    "UnsupportedStore": lambda _: open_store("lake/wide", create=False),
    "CloudUriInvalid": lambda _: open_store("s3://", create=False),
    "BucketNotFound": _status(404, "NoSuchBucket", "The specified bucket does not exist"),
    "AccessDenied": _status(403, "AccessDenied", "Access Denied"),
    "StoreUnreachable": _answer('error sending request, "dns error"'),
    "WritersMet": _status(409, "ConditionalRequestConflict", "A conflicting operation occurred"),
    "CommitContended": _contended,
    "ManifestCorrupt": lambda _: parse_json(b"{", "metadata/manifest/1.json", ENTRY),
    "FormatTooNew": lambda _: parse_versioned(b'{"format": 99}', "snaploom.json", HINT),
    # Indexes.
    "IndexNotPossible": lambda _: index_type("MINMAX"),
    "IndexUnreadable": lambda _: parse_state(b"{", "state/1.json"),
    "IndexStoreFailed": lambda _: translated(
        TransportError(403, "security_exception", {}), "https://search:9200", "read the index x"
    ),
    "KeyUnavailable": lambda _: open_keys("nokms+https://keys:8200"),
    "StatementInvalid": lambda _: open_opensearch_base("opensearch://", None),
    "ValueNotWritable": lambda _: written("price", float("nan")),
    # The operator.
    "SettingsInvalid": lambda folder: read_settings(folder / "settings.yaml"),
    "ReviewUnreadable": lambda _: parse_review(b"{}"),
    "ClusterFailed": _api("get", 418, "I am a teapot"),
    "ObjectMissing": _api("get", 404, 'outputdatasets "wide" not found', name="wide"),
    "ObjectExists": _api("create", 409, '"wide" already exists', "AlreadyExists", name="wide"),
    "ObjectChanged": _api("patch", 409, "the object has been modified", "Conflict"),
    "ObjectRefused": _api("create", 422, "spec.run: Invalid value", "Invalid"),
    "NamespaceTerminating": _api(
        "create", 403, "it is being terminated", causes=[{"reason": "NamespaceTerminating"}]
    ),
    "NotAllowed": _api("list", 403, 'User "ada" cannot list resource "outputdatasets"'),
    "ResourceUnknown": _api("list", 404, "the server could not find the requested resource"),
    "WatchExpired": _api("watch", 410, "too old resource version: 1 (7)", "Expired"),
    "TooManyRequests": _api("list", 429, "too many requests, please try again later"),
    "ApiUnavailable": _api("list", 503, "the server is currently unable to handle the request"),
}
"""By reason."""


def caused(reason: str, folder: Path) -> SnaploomError:
    """The error of a reason, caused in an empty folder."""
    try:
        returned = CAUSES[reason](folder)
    except SnaploomError as error:
        return error
    assert isinstance(returned, SnaploomError), f"{reason} was not caused"
    return returned


SHOWN = ("found", "expected", "hint")
"""Arguments of an error that are shown, each in a line of its own."""


@dataclass(frozen=True)
class Site:
    """One call that makes an error."""

    place: str
    """`path:line` below the package."""
    error: ErrorClass
    """What it makes."""
    call: ast.Call
    """The call."""

    @property
    def shown(self) -> dict[str, ast.expr]:
        """Its arguments that are shown, besides the message."""
        return {word.arg: word.value for word in self.call.keywords if word.arg in SHOWN}

    def fits(self, lines: dict[str, str]) -> bool:
        """Whether a text can come from here: it contains all that is fixed here.

        Args:
            lines: the message, and what follows each label.
        """
        fixed = {"message": self.call.args[0], **self.shown} if self.call.args else self.shown
        return all(
            re.fullmatch(_pattern(value), lines.get(label, ""), re.DOTALL)
            for label, value in fixed.items()
        )


@cache
def sites() -> tuple[Site, ...]:
    """All of them."""
    named = {error.name: error for error in [*errors(), *errors(OPERATOR)]}
    return tuple(site for root in (PACKAGE, OPERATOR) for site in _sites(root, named))


def _sites(root: Path, named: dict[str, ErrorClass]) -> Iterator[Site]:
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in named:
                    place = f"{path.relative_to(root.parent)}:{node.lineno}"
                    yield Site(place, named[name], node)


def _pattern(value: ast.expr) -> str:
    """A pattern of the texts that an expression can be; anything where that is not fixed."""
    match value:
        case ast.Constant(value=str(text)):
            return re.escape(text)
        case ast.Constant(value=None):
            return ""
        case ast.JoinedStr(values=parts):
            return "".join(map(_pattern, parts))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _pattern(left) + _pattern(right)
        case ast.IfExp(body=one, orelse=other):
            return f"(?:{_pattern(one)}|{_pattern(other)})"
    return ".*"


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
