"""The Bundle of a run in a cluster, as a file: read, parsed strictly, and validated once more.

The operator validated it already; a job that believed so would run whatever somebody else put
into a ConfigMap.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue, ValidationError

from snaploom.errors import FormatTooNew, SnaploomError
from snaploom.jobs.declarations.declarationfiles import refuse
from snaploom.jobs.reports.identity import Owner
from snaploom.localfiles import open_plain
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.finding import Finding, Severity
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.resource import Resource
from snaploom.models.skippingindex import SkippingIndex
from snaploom.planning.bundle import BUNDLE_FORMAT, Bundle
from snaploom.planning.secretdetection import SECRET_CODE
from snaploom.planning.validation.validator import validate

FILE_NAME = "bundle.json"
"""Key of the ConfigMap, and so the name of the file in the folder where it is mounted."""

COMPRESSED = ".gz"
"""Suffix of the key where the Bundle is too long for a ConfigMap as text."""

SECRETS = frozenset({"SL143", SECRET_CODE})
"""Codes of secrets in a declaration: warnings on a laptop, refused here (rule R16)."""

_RUNNABLE = (("outputDataset", OutputDataset.__name__), ("skippingIndex", SkippingIndex.__name__))


class BundleUnreadable(SnaploomError):
    """The Bundle of a run cannot be read, or is of another resource."""

    reason = "BundleUnreadable"
    exit_code = 2


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

        Args:
            uid: of the resource that it must be of; one in the Bundle must be the same.

        Raises:
            FormatTooNew: a newer Snaploom wrote it (rule P8).
            BundleUnreadable: it is no Bundle, or one of another resource.
        """
        version = self.raw.get("format")
        if isinstance(version, int) and version > BUNDLE_FORMAT:
            raise FormatTooNew(
                f"{self.path} was written by a newer Snaploom",
                found=f"format {version}",
                expected=f"format {BUNDLE_FORMAT} or older",
                hint="run the job with an image of the operator's version",
            )
        try:
            bundle = Bundle.parse(self.raw)
        except ValidationError as error:
            raise self._unreadable(_first_fault(error)) from None  # the cause shows values
        found = bundle.runnable.metadata.uid
        if found and found != uid:
            raise self._unreadable(f"{bundle.runnable.identity} with the UID {found}, not {uid}")
        return bundle

    def _unreadable(self, found: str) -> BundleUnreadable:
        return BundleUnreadable(
            f"{self.path} is not what this run was to work on",
            found=found,
            expected="a Bundle as the operator of the same version writes it",
            hint="compare the versions of operator and image",
        )


def read_bundle_file(place: Path) -> BundleFile:
    """Read `bundle.json`, or the one in a folder, where it may be compressed.

    Raises:
        BundleUnreadable: there is no such file, or it is not a JSON object.
    """
    path = _file_in(place) if os.path.isdir(place) else place
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
        hint="check the path; in a cluster use images of one version, and ask for a new run",
    )


def _file_in(folder: Path) -> Path:
    compressed = folder / f"{FILE_NAME}{COMPRESSED}"
    return compressed if os.path.exists(compressed) else folder / FILE_NAME


def refuse_invalid(bundle: Bundle, allow: Allowances = NO_ALLOWANCES) -> tuple[Finding, ...]:
    """Stop if anything about a Bundle is wrong; else the warnings about it.

    Args:
        bundle: what the operator sent.
        allow: what it may use beyond the built-in lists.

    Raises:
        NoUniqueJoinTree: every error is an ambiguous or unreachable join tree.
        InvalidDeclarations: otherwise.
    """
    members = {resource.identity for resource in _members(bundle)}
    indexed = () if bundle.indexed_output is None else (bundle.indexed_output,)
    # What the indexed output refers to is no part of the Bundle, and no business of the index.
    known = validate((*_members(bundle), *indexed), allow=allow)
    findings = tuple(_hardened(f) for f in known if f.resource in members)
    refuse(findings)
    return findings


def _members(bundle: Bundle) -> Iterator[Resource]:
    yield bundle.runnable
    yield from bundle.data_sources
    yield from bundle.data_relationships
    yield from bundle.metadata_applicators
    yield from bundle.field_transformers


def _hardened(finding: Finding) -> Finding:
    if finding.code not in SECRETS:
        return finding
    return finding.model_copy(update={"severity": Severity.ERROR})


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in fault["loc"])
    return f"{place}: {fault['msg']}" if place else fault["msg"]
