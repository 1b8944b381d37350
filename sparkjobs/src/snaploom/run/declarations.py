"""Declarations of a job: loaded, validated, picked, and the Bundle of a run in a cluster."""

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from snaploom.errors import FormatTooNew, Interrupted, LeaseNotObtained, RootEmpty, SnaploomError
from snaploom.installed import VERSION
from snaploom.loading.load import Loaded, load, load_resources
from snaploom.localfiles import open_plain
from snaploom.models.allowances import NO_ALLOWANCES, NO_CHOICE, Allowances, VariableChoice
from snaploom.models.common import EpochNanos, Resource, format_instant, now
from snaploom.models.findings import (
    Finding,
    InvalidDeclarations,
    Severity,
    exit_code_of,
    make_finding,
    refuse,
)
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.report import Report, RunPhase
from snaploom.models.skippingindex import SkippingIndex
from snaploom.output.documents import first_fault
from snaploom.plan.bundle import BUNDLE_FORMAT, Bundle
from snaploom.plan.bundles import bundle_for
from snaploom.policy.secretdetection import SECRET_CODE
from snaploom.run.joblog import Owner
from snaploom.validate.validator import validate

# From files to what a job works on: load, validate, pick; every finding at once.


@dataclass(frozen=True)
class Declarations:
    """Everything that some files declare, and all that is wrong or doubtful with it."""

    loaded: Loaded
    findings: tuple[Finding, ...]
    allow: Allowances = NO_ALLOWANCES
    """Entries that they may use beyond the built-in lists: handed on to their jobs."""

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The resources, in the order of files and documents."""
        return self.loaded.resources

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(r.name for r in self.resources if isinstance(r, OutputDataset))

    def placed(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        return self.loaded.placed(findings)

    def place_of(self, resource: str, path: str) -> str:
        """`file:line` of a field of a resource (`Kind/name`); empty where it is in no file."""
        for located in self.loaded.located:
            if located.resource.identity == resource:
                return f"{located.file}:{located.position(path).line}"
        return ""

    def bundle(self, name: str, kind: str = OutputDataset.__name__) -> Bundle:
        """An output, or a skipping index, with everything that it refers to."""
        try:
            return bundle_for(kind, name, self.resources)
        except InvalidDeclarations as error:
            broken = f"{kind}/{name}" in self.loaded.broken
            unread = tuple(f for f in self.findings if self._is_about_reading(f))
            # Where nothing could be read at all, only that is the fault.
            explained = broken or (unread and not self.resources)
            raise InvalidDeclarations([*unread, *(() if explained else error.findings)]) from None

    def findings_for(self, bundle: Bundle) -> tuple[Finding, ...]:
        """Findings about an output or an index: about its resources, and about files as such."""
        members = {resource.identity for resource in _members(bundle)}
        return tuple(
            finding
            for finding in self.findings
            if finding.resource in members or self._is_about_reading(finding)
        )

    def _is_about_reading(self, finding: Finding) -> bool:
        known = {resource.identity for resource in self.resources}
        return finding.is_error and finding.resource not in known


def read_declarations(
    paths: Sequence[Path],
    allow: Allowances = NO_ALLOWANCES,
    choice: VariableChoice = NO_CHOICE,
) -> Declarations:
    """Read files and folders and validate what they declare; never raises for their contents."""
    return _validated(load(paths, choice), allow)


def folder_declared(name: str, paths: Sequence[Path], choice: VariableChoice = NO_CHOICE) -> str:
    """URI of the folder of an output."""
    output = read_declarations(paths, choice=choice).bundle(name).output
    return output.spec.output_folder.folder_uri


def declared(
    resources: Sequence[Resource],
    paths: Sequence[Path] = (),
    allow: Allowances = NO_ALLOWANCES,
    choice: VariableChoice = NO_CHOICE,
) -> Declarations:
    """The declarations of resources, and of files beside them; as `read_declarations`."""
    return _validated(load_resources(resources, paths, choice), allow)


def _validated(loaded: Loaded, allow: Allowances) -> Declarations:
    findings = validate(loaded.resources, broken=loaded.broken, allow=allow)
    return Declarations(loaded, (*loaded.findings, *loaded.placed(findings)), allow)


def runnable_bundles(
    declarations: Declarations, names: Sequence[str]
) -> tuple[tuple[Bundle, ...], tuple[Finding, ...]]:
    """Outputs about which nothing is wrong, and the warnings about them."""
    bundles = []
    findings: list[Finding] = [] if names else list(declarations.findings)
    for name in names:
        try:
            bundles.append(declarations.bundle(name))
            concerning = declarations.findings_for(bundles[-1])
        except InvalidDeclarations as error:
            concerning = error.findings
        findings.extend(finding for finding in concerning if finding not in findings)
    refuse(findings)
    if not bundles:
        nothing = make_finding(
            "SL191",
            "these files declare no OutputDataset",
            path="--all",
            found="none",
            expected="at least one OutputDataset",
            hint="name with -f the file or folder that declares it",
        )
        raise InvalidDeclarations([nothing])
    return tuple(bundles), tuple(findings)


def _members(bundle: Bundle) -> tuple[Resource, ...]:
    return (
        bundle.runnable,
        *bundle.data_sources,
        *bundle.data_relationships,
        *bundle.metadata_applicators,
        *bundle.field_transformers,
    )


# The Bundle of a run in a cluster, as a file: read, parsed strictly, and validated once more.

FILE_NAME = "bundle.json"
"""Key of the ConfigMap, and so the name of the file in the folder where it is mounted."""

COMPRESSED = ".gz"
"""Suffix of the key where the Bundle is too long for a ConfigMap as text."""

SECRETS = frozenset({"SL143", SECRET_CODE})
"""Codes of secrets in a declaration: warnings on a laptop, refused here (rule R16)."""

_RUNNABLE = (("outputDataset", OutputDataset.__name__), ("skippingIndex", SkippingIndex.__name__))


class BundleUnreadable(SnaploomError):
    """The Bundle of a run cannot be read, or is of another resource."""


@dataclass(frozen=True)
class BundleFile:
    """A file that should hold a Bundle."""

    path: Path
    raw: dict[str, JsonValue]

    @property
    def owner(self) -> Owner:
        """The resource that it is of, as far as that is known without parsing all of it.

        Raises:
            BundleUnreadable: it cannot be found.
        """
        for key, kind in _RUNNABLE:
            resource = self.raw.get(key)
            metadata = resource.get("metadata") if isinstance(resource, dict) else None
            if isinstance(metadata, dict) and isinstance(name := metadata.get("name"), str):
                namespace = metadata.get("namespace")
                return Owner(kind, name, namespace if isinstance(namespace, str) else "")
        raise self._unreadable("neither an OutputDataset nor a SkippingIndex with a name")

    def parse(self, uid: str) -> Bundle:
        """The Bundle.

        `uid` must be that of the Bundle, where it has one.

        Raises:
            BundleUnreadable: it is no Bundle, or one of another resource.
        """
        version = self.raw.get("format")
        if isinstance(version, int) and version > BUNDLE_FORMAT:
            raise FormatTooNew(
                f"{self.path} was written by a newer Snaploom",
                found=f"format {version}",
                expected=f"format {BUNDLE_FORMAT} or older",
            )
        try:
            bundle = Bundle.parse(self.raw)
        except ValidationError as error:
            raise self._unreadable(first_fault(error)) from None  # the cause shows values
        found = bundle.runnable.metadata.uid
        if found and found != uid:
            raise self._unreadable(f"{bundle.runnable.identity} with the UID {found}, not {uid}")
        return bundle

    def _unreadable(self, found: str) -> BundleUnreadable:
        return BundleUnreadable(
            f"{self.path} is not what this run was to work on",
            found=found,
            expected="a Bundle as the operator of the same version writes it",
        )


def read_bundle_file(place: Path) -> BundleFile:
    """Read `bundle.json`, or the one in a folder, where it may be compressed.

    Raises:
        BundleUnreadable: there is no such file, or it is not a JSON object.
    """
    path = place
    if os.path.isdir(place):
        compressed = place / f"{FILE_NAME}{COMPRESSED}"
        path = compressed if os.path.exists(compressed) else place / FILE_NAME
    try:
        with open_plain(path) as stream:
            content = stream.read()
        raw = json.loads(gzip.decompress(content) if path.name.endswith(COMPRESSED) else content)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        found = (isinstance(error, OSError) and error.strerror) or "no JSON"
        raise _unreadable(path, found) from None
    if not isinstance(raw, dict):
        raise _unreadable(path, "JSON that is no object")
    return BundleFile(path, raw)


def _unreadable(path: Path, found: str) -> BundleUnreadable:
    return BundleUnreadable(
        f"cannot read {path}",
        found=found,
        expected="a Bundle as the operator writes it, or a folder with one",
    )


def refuse_invalid(bundle: Bundle, allow: Allowances = NO_ALLOWANCES) -> tuple[Finding, ...]:
    """Stop if anything about a Bundle is wrong; else the warnings about it."""
    own = _members(bundle)
    members = {resource.identity for resource in own}
    indexed = () if bundle.indexed_output is None else (bundle.indexed_output,)
    # What the indexed output refers to is no part of the Bundle, and no business of the index.
    known = validate((*own, *indexed), allow=allow)
    findings = tuple(_hardened(f) for f in known if f.resource in members)
    refuse(findings)
    return findings


def _hardened(finding: Finding) -> Finding:
    if finding.code not in SECRETS:
        return finding
    return finding.model_copy(update={"severity": Severity.ERROR})


# Maps Reports to the exit code of a process; the codes are listed in `cli/main.py`.


def report_exit_code(report: Report) -> int:
    """The exit code of one run; what validation or planning found has codes of its own."""
    match report.phase:
        case RunPhase.SUCCEEDED:
            return 0
        case RunPhase.INTERRUPTED:
            return Interrupted.exit_code
    for error in (LeaseNotObtained, RootEmpty):
        if report.reason == error.reason:
            return error.exit_code
    return exit_code_of(report.findings) or 1


def combined_exit_code(codes: Sequence[int]) -> int:
    """One exit code for several outputs: an interruption's, what all failures share, or 1."""
    failures = {code for code in codes if code != 0}
    if Interrupted.exit_code in failures:
        return Interrupted.exit_code
    return failures.pop() if len(failures) == 1 else int(bool(failures))


def finished_report(name: str, started: EpochNanos, **facts: Any) -> Report:
    """The Report of work that has ended well now, and wove nothing."""
    return Report(
        output=name,
        run_id="",
        phase=RunPhase.SUCCEEDED,
        started_at=format_instant(started),
        finished_at=format_instant(now()),
        tool_version=VERSION,
        **facts,
    )


def unstarted_report(name: str, moment: EpochNanos, error: SnaploomError) -> Report:
    """The Report of a run that ended before it began."""
    is_interrupted = isinstance(error, Interrupted)
    return Report(
        output=name,
        run_id="",
        phase=RunPhase.INTERRUPTED if is_interrupted else RunPhase.FAILED,
        started_at=format_instant(moment),
        finished_at=format_instant(moment),
        findings=error.findings[:10_000] if isinstance(error, InvalidDeclarations) else (),
        message=str(error)[:32_768],
        reason=error.reason,
        tool_version=VERSION,
        retryable=error.retryable,
    )
