"""Every problem has one entry, one section of the page, and an error that states its case."""

import ast
import io
import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from unittest.mock import patch

import pytest
from generation import samples
from generation.problems import PAGE, problems_page
from kubernetes.config import ConfigException
from opensearchpy.exceptions import TransportError
from pyspark.sql import types as spark
from support.documentation.pages import DOCS, anchors_of
from support.storage.folders import START, a_run

import snaploom
import snaploom_operator
from snaploom.cli.init import init
from snaploom.endpoints import bounded_body, origin_of
from snaploom.engine.schemachecks import MissingField
from snaploom.errors import SnaploomError, StorageError, problems
from snaploom.files.cloud import store_error
from snaploom.files.local import LocalObjectStore
from snaploom.files.stores import open_store
from snaploom.models.allowances import NO_ALLOWANCES
from snaploom.models.common import EpochNanos, MissingMode, TimeOffset
from snaploom.models.datasource import Credentials
from snaploom.models.findings import refuse
from snaploom.models.report import ExclusionReason
from snaploom.models.run import RunSettings, SparkSettings
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
from snaploom.plan.plan import PublishedState, plan_offline, plan_run
from snaploom.plan.steps import refuse_empty_root
from snaploom.plan.times import length_of
from snaploom.plan.tree import JoinNode
from snaploom.plugins.flint.client import translated
from snaploom.plugins.flint.store import open_opensearch_base
from snaploom.plugins.flint.values import written
from snaploom.policy.acceleration import accelerated_settings
from snaploom.policy.formatfaults import FormatPlace, require_format
from snaploom.project.results import Run, Runs
from snaploom.run.clusterobjects import ClusterLease
from snaploom.run.declarations import read_bundle_file, read_declarations, unstarted_report
from snaploom.run.joblog import Owner, RunIdentity
from snaploom.run.runevents import Interruption
from snaploom.run.session.accelerator import refuse_unfit
from snaploom.run.session.spark import build_session
from snaploom.skipping.formats.parquetfiles import open_keys
from snaploom.skipping.indexes.base import index_type
from snaploom.skipping.stores.port import parse_state
from snaploom.sources.databases.connection import login_of
from snaploom.sources.port import not_listed
from snaploom.sources.transformers import check_schema
from snaploom.spark.failures import translate
from snaploom_operator.admission.request import parse_review
from snaploom_operator.cluster.requests import RequestTarget, failure_of
from snaploom_operator.conditions import Reason
from snaploom_operator.settings import read_settings

pytestmark = pytest.mark.long

Cause = Callable[[Path], object]
"""Raises the error, or returns it where the program's function does; given an empty folder."""
Call = tuple[str, dict[str, ast.expr]]
"""Place and named arguments."""

_PLACE = "s3a://lake/wide/snaploom.json"
_OWNER = Owner("OutputDataset", "wide", "shop")


def _not_unique(_folder: Path) -> None:
    declarations = read_declarations([samples.FOLDER / "SL301.yaml"])
    bundle = declarations.bundle(samples.OUTPUT)
    refuse(plan_run(plan_offline(bundle), {}, PublishedState(), EpochNanos(START)).findings)


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


def _accelerator(_folder: Path) -> None:
    spark = {"accelerator": "COMET", "sparkConf": {"spark.app.name": "x"}}
    refuse_unfit(accelerated_settings(SparkSettings.parse(spark)), None, version="4.3.0")


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
    "AcceleratorNotUsable": _accelerator,
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


FAMILIES = {"SourceFailed", "OperatorFailed"}
"""Reasons of classes that only others are made of."""
OF_WORDS = {
    "Failed",
    "MemoryUsedUp",
    "ClusterFailed",
    "ObjectMissing",
    "ObjectExists",
    "ObjectChanged",
} | {
    *("ObjectRefused", "NamespaceTerminating", "NotAllowed", "ResourceUnknown", "WatchExpired"),
    *("TooManyRequests", "ApiUnavailable", "MemoryUsedUp"),
}
"""Errors whose messages by Spark or the API server state what was found and expected."""
OF_EVENTS = {
    *("Interrupted", "SparkStopped", "UnexpectedFault", "LeaseNotObtained", "LeaseUnavailable"),
    *("FolderRemoved", "RunRevoked", "CommitOutcomeUnknown", "IndexCommitUnknown", "IndexBusy"),
    *("IndexOwned", "IndexNotFound", "UrlNotAllowed"),
}
"""What happened to a run: nothing was given that could be other than expected."""
STATED = OF_WORDS | OF_EVENTS | FAMILIES | {"Invalid", "NoUniqueJoinTree"}
"""Reasons of errors that need neither `found` nor `expected`."""
EMPTY_WORDS = (
    "follow the message",
    "message states",
    "message has its words",
    "in the reference of",
)
PACKAGES = [Path(package.__file__ or "").parent for package in (snaploom, snaploom_operator)]


@cache
def nodes() -> tuple[tuple[str, ast.AST], ...]:
    """Place and syntax of everything in the two packages."""
    return tuple(
        (f"{path.relative_to(root.parent)}:{getattr(node, 'lineno', 0)}", node)
        for root in PACKAGES
        for path in sorted(root.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
    )


@cache
def reason_of() -> dict[str, str]:
    """Reason of each class of errors, by the name of the class; some need Spark to be imported."""
    classes = [node for _, node in nodes() if isinstance(node, ast.ClassDef)]
    found = {"SnaploomError": "Failed"}
    while new := {
        node.name: reason_in(node, found[parent])
        for node in classes
        for parent in (ast.unparse(base) for base in node.bases)
        if parent in found and node.name not in found
    }:
        found |= new
    return found


def reason_in(node: ast.ClassDef, inherited: str) -> str:
    given = [ast.literal_eval(word.value) for word in node.keywords if word.arg == "reason"]
    return next((name for name in (*given, node.name) if name in problems()), inherited)


@cache
def calls() -> Mapping[str, list[Call]]:
    """Calls that make an error, by its reason."""
    found = defaultdict(list)
    for place, node in nodes():
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                given = {word.arg or "": word.value for word in node.keywords}
                found[reason_of().get(name, "")].append((place, given))
    return found


def calls_of(reason: str) -> list[Call]:
    return calls().get(reason, [])


def test_every_class_and_every_reason_has_an_entry_and_no_entry_is_of_nothing() -> None:
    reasons = {name for name, problem in problems().items() if not problem.severity}
    assert reasons == {*reason_of().values(), *(reason.value for reason in Reason)}
    shown = {name for name in reasons if problems()[name].at in ("condition", "event")}
    assert shown == {reason.value for reason in Reason}


@pytest.mark.parametrize("name", sorted(problems()))
def test_entry_has_whole_sentences_and_a_section_of_its_own(name: str) -> None:
    problem = problems()[name]
    assert problem.cause.endswith((".", "`."))
    assert problem.fix.endswith(".") or problem.at in ("condition", "event")
    assert not [words for words in EMPTY_WORDS if words in problem.fix.casefold()]
    assert name.lower() in anchors_of(DOCS / PAGE)


def test_names_of_one_problem_lead_to_each_other() -> None:
    page = problems_page()
    for problem in problems().values():
        if problem.of:
            assert f"See [{problem.of}](#{problem.of.lower()})" in page
            assert f"[{problem.name}](#{problem.name.lower()})" in page
            assert not problems()[problem.of].of


def test_error_without_an_entry_has_that_of_the_class_above() -> None:
    class BucketAsleep(StorageError):
        """One of a package that registers a store."""

    class Renamed(StorageError, reason="AccessDenied"):
        """One of another reason."""

    assert (BucketAsleep.reason, BucketAsleep("x").retryable) == ("StorageFailed", True)
    assert Renamed("x").hint == problems()["AccessDenied"].fix
    assert Renamed("x", hint="ask Ada").hint == "ask Ada"


@pytest.mark.parametrize("reason", sorted(CAUSES))
def test_error_states_found_expected_and_fix(reason: str, tmp_path: Path) -> None:
    error = caused(reason, tmp_path)
    assert error.reason == reason
    assert error.message
    assert error.hint
    assert not [words for words in EMPTY_WORDS if words in error.hint.casefold()]
    if reason not in STATED:
        assert error.found
        assert error.expected


def test_families_are_of_no_error_and_what_is_caused_here_is_a_reason() -> None:
    assert {*CAUSES, *FAMILIES} <= set(reason_of().values())
    assert not [place for family in FAMILIES for place, _ in calls_of(family)]


@pytest.mark.parametrize("reason", sorted({*reason_of().values()} - CAUSES.keys() - FAMILIES))
def test_reason_that_is_not_caused_here_is_expected_by_another_test(reason: str) -> None:
    """Where it takes Spark or a server."""
    names = "|".join({reason, *(each for each, other in reason_of().items() if other == reason)})
    expected = rf"(raises|isinstance)\([^)]*\b({names})\b|[\"']({names})[\"']"
    assert any(re.search(expected, text) for text in texts_of_tests())
    if reason not in STATED:
        assert any({"found", "expected"} <= given.keys() for _, given in calls_of(reason))


@pytest.mark.parametrize("reason", sorted(problems()))
def test_no_hint_at_a_raise_repeats_the_entry(reason: str) -> None:
    fix = problems()[reason].fix.casefold().rstrip(".")
    hints = ((place, given.get("hint")) for place, given in calls_of(reason))
    texts = ((place, hint.value) for place, hint in hints if isinstance(hint, ast.Constant))
    assert not [place for place, text in texts if str(text).casefold() in fix]


@cache
def texts_of_tests() -> tuple[str, ...]:
    here = Path(__file__)
    files = here.parents[1].rglob("*.py")
    return tuple(path.read_text("utf-8") for path in files if path != here)
