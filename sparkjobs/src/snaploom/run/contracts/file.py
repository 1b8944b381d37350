"""Reads a contract from a file, and lets the standard's own library judge it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from open_data_contract_standard.model import OpenDataContractStandard
from pydantic import JsonValue, ValidationError

from snaploom.loading.composer import compose, plain
from snaploom.loading.project import read_files
from snaploom.models.findings import Finding, InvalidDeclarations, make_finding

REQUIRED = ("apiVersion", "kind", "id", "version")
"""Fields that the standard demands of every contract; its library does not."""


def read_contract(path: Path) -> Mapping[str, JsonValue]:
    """The contract in a YAML or JSON file.

    Raises:
        InvalidDeclarations: the file cannot be read, is no YAML, or no contract of the standard;
            with all that is wrong.
    """
    texts, findings = read_files([path])
    if not texts:
        raise InvalidDeclarations(findings or [_wrong(path, "", "nothing", "one contract")])
    composed = compose(texts[0].text)
    faults = [composed.fault] if composed.fault else []
    faults += [fault for document in composed.documents for fault in document.faults]
    if faults:
        raise InvalidDeclarations(
            [
                _wrong(path, "", fault.message, "YAML that can be read", fault.hint)
                for fault in faults
            ]
        )
    documents = [plain(document.node) for document in composed.documents]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        found = f"{len(documents)} documents" if len(documents) != 1 else "no mapping"
        raise InvalidDeclarations([_wrong(path, "", found, "one contract")])
    contract = documents[0]
    wrong = list(_faults(path, contract))
    if wrong:
        raise InvalidDeclarations(wrong)
    return contract


def _faults(path: Path, contract: dict[str, JsonValue]) -> list[Finding]:
    found = [
        _wrong(path, key, "nothing", "a value, which the standard demands")
        for key in REQUIRED
        if contract.get(key) in (None, "")
    ]
    kind = contract.get("kind")
    if kind not in (None, "DataContract"):
        found.append(_wrong(path, "kind", str(kind), "DataContract"))
    version = str(contract.get("apiVersion") or "v3")
    if not version.startswith("v3."):
        found.append(_wrong(path, "apiVersion", version, "version 3 of the standard"))
    try:
        OpenDataContractStandard.model_validate(contract)
    except ValidationError as error:
        found.extend(
            _wrong(path, ".".join(map(str, one["loc"])), str(one["input"])[:200], one["msg"])
            for one in error.errors()
        )
    return found


def _wrong(path: Path, place: str, found: str, expected: str, hint: str = "") -> Finding:
    return make_finding(
        "SL191",
        "this is not a contract of the Open Data Contract Standard",
        path=f"--check {place}".strip(),
        found=found,
        expected=expected,
        hint=hint or "'snaploom contract' without --check writes one",
    ).model_copy(update={"file": str(path)})
