"""The smallest input of each reason whose error can be caused without Spark and without servers.

Each function causes the error through the function of the program that raises it, with what is
small and real: files below a folder, texts, answers as a server gives them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from unittest.mock import patch

from generation import samples
from kubernetes.config import ConfigException
from opensearchpy.exceptions import TransportError
from pyspark.sql import types as spark
from support.storage.folders import START, a_run

from snaploom.cli.init import init
from snaploom.endpoints.connections import bounded_body, origin_of
from snaploom.engine.failures import translate
from snaploom.engine.schemachecks import MissingField
from snaploom.engine.sources.databases.login import login_of
from snaploom.engine.sources.port import not_listed
from snaploom.engine.sources.schemas import check_schema
from snaploom.errors import SnaploomError, StorageError
from snaploom.interop.flintspark.values import written
from snaploom.interop.opensearch.base import open_opensearch_base
from snaploom.interop.opensearch.failures import translated
from snaploom.jobs.clusterlease import ClusterLease
from snaploom.jobs.declarations.bundlefile import read_bundle_file
from snaploom.jobs.declarations.declarationfiles import read_declarations, refuse
from snaploom.jobs.interruption import Interruption
from snaploom.jobs.reports.exitcodes import unstarted_report
from snaploom.jobs.reports.identity import Owner, RunIdentity
from snaploom.jobs.session.spark import build_session
from snaploom.models.allowances import NO_ALLOWANCES
from snaploom.models.common import MissingMode, TimeOffset
from snaploom.models.datasource import Credentials
from snaploom.models.report import ExclusionReason
from snaploom.models.run import RunSettings
from snaploom.models.times import EpochNanos
from snaploom.planning.calendar import length_of
from snaploom.planning.emptysources import refuse_empty_root
from snaploom.planning.fileformats import FormatPlace, require_format
from snaploom.planning.intervals import (
    Intervals,
    IntervalSettings,
    SourceSnapshots,
    root_candidates,
)
from snaploom.planning.intervalset import IntervalSet
from snaploom.planning.plan import PublishedState, plan_run
from snaploom.planning.tree import JoinNode
from snaploom.project.results import Run, Runs
from snaploom.skipping.formats.keyservices import open_keys
from snaploom.skipping.indexes.registry import index_type
from snaploom.skipping.stores.statedocument import parse_state
from snaploom.storage.documentparser import ENTRY, HINT, parse_json, parse_versioned
from snaploom.storage.entries import Claim
from snaploom.storage.folder import open_folder
from snaploom.storage.history import refuse_empty
from snaploom.storage.local import LocalObjectStore
from snaploom.storage.manifest import ManifestLog
from snaploom.storage.readchoice import ReadChoice
from snaploom.storage.state import EMPTY, FolderState
from snaploom.storage.storeerrors import store_error
from snaploom.storage.stores import open_store
from snaploom_operator.admission.request import parse_review
from snaploom_operator.cluster.requests import RequestTarget, failure_of
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
    with patch("snaploom.planning.intervals.MOST_CANDIDATES", 100):
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

    with patch("snaploom.storage.numberedlog.COMMIT_ATTEMPTS", 3):
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
