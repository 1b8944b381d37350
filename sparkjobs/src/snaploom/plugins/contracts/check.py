"""Contracts written, or read from files and compared with what is published and declared."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import yaml
from cyclopts import Parameter
from pydantic import BaseModel, JsonValue, ValidationError

from snaploom.cli import options
from snaploom.cli.console import (
    OutputForm,
    message_console,
    print_findings,
    print_json,
    result_console,
)
from snaploom.errors import ArgumentInvalid
from snaploom.files.objectstore import ObjectStore
from snaploom.loading.composer import compose, plain
from snaploom.loading.nearmisses import counted
from snaploom.loading.project import read_files
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.findings import Finding, InvalidDeclarations, make_finding
from snaploom.models.kinds import TextDumper, to_yaml
from snaploom.output.entries import SnapshotRecord
from snaploom.output.folder import is_unused, open_folder
from snaploom.output.history import refuse_empty, with_partition
from snaploom.output.manifest import read_schema
from snaploom.output.state import EMPTY
from snaploom.plan.bundle import Bundle
from snaploom.plan.plan import plan_offline
from snaploom.plan.times import plus_bounded
from snaploom.plugins import contracts
from snaploom.plugins.contracts.document import (
    DATA,
    ENGINE,
    FIRST_VERSION,
    PublishedTable,
    contract_document,
)
from snaploom.plugins.contracts.relationships import (
    add_relationships,
    data_relationships,
    join_proofs,
    listed,
    relationship_statements,
)
from snaploom.run.declarations import runnable_bundles
from snaploom.run.folders import open_named
from snaploom.types.schemas import Struct, parse_schema, path_text

# Compares what a contract promises with what is published and declared; pure.

_TYPES = ("physicalType", "logicalType")
_FLAGS = ("primaryKey", "primaryKeyPosition", "partitioned", "partitionKeyPosition")
_SOURCES = "transformSourceObjects"


class Verdict(StrEnum):
    """Meaning of a difference."""

    BROKEN = "BROKEN"
    """The contract promises what is not so."""
    UNSTATED = "UNSTATED"
    """It is so, and the contract does not state it."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """One difference between a contract and its output."""

    verdict: Verdict
    """Its meaning."""
    subject: str
    """Column, check or service level."""
    promised: str
    """Statement of the contract; empty without one."""
    found: str
    """Fact about the output; empty without one."""

    @property
    def document(self) -> JsonValue:
        return {
            "verdict": self.verdict.value,
            "subject": self.subject,
            "promised": self.promised,
            "found": self.found,
        }

    def __str__(self) -> str:
        if self.verdict is Verdict.UNSTATED:
            return f"+ {self.subject}: {self.found}, which the contract does not mention"
        return f"! {self.subject}: promised {self.promised}, found {self.found or 'nothing'}"


Statements = Mapping[str, str]
"""Statements of a contract, by subject."""


def deviations(
    contract: Mapping[str, JsonValue], current: Mapping[str, JsonValue]
) -> tuple[Deviation, ...]:
    """All differences, those that break the contract first."""
    promised, found = statements(contract, current), statements(current, current)
    broken = [
        Deviation(Verdict.BROKEN, subject, text, found.get(subject, ""))
        for subject, text in promised.items()
        if found.get(subject) != text
    ]
    unstated = [
        Deviation(Verdict.UNSTATED, subject, "", text)
        for subject, text in found.items()
        if subject not in promised and not _is_below_unstated(subject, promised, found)
    ]
    return (*broken, *unstated)


def statements(document: Mapping[str, JsonValue], current: Mapping[str, JsonValue]) -> Statements:
    """Statements of a contract about the output that another one describes."""
    found: dict[str, str] = {}
    name = _table(current, "").get("name")
    table = _table(document, str(name))
    found.update(_columns(listed(table, "properties"), ()))
    found.update(relationship_statements(document, str(name)))
    for check in listed(table, "quality"):
        if check.get("engine") == ENGINE:
            found[f"check {check.get('name')}"] = json.dumps(
                check.get("implementation"), sort_keys=True, ensure_ascii=False
            )
    for level in listed(document, "slaProperties"):
        if level.get("property") in ("frequency", "latency", "retention"):
            found[f"service level {level['property']}"] = " ".join(
                str(level[key]) for key in ("value", "unit") if level.get(key) is not None
            )
    return found


def _is_below_unstated(subject: str, promised: Statements, found: Statements) -> bool:
    """Whether a column is part of one that is reported already."""
    if not subject.startswith("column "):
        return False
    path = subject.removeprefix("column ")
    return any(
        other.startswith("column ")
        and path.startswith(f"{other.removeprefix('column ')}.")
        and other not in promised
        for other in found
    )


def _table(document: Mapping[str, JsonValue], name: str) -> Mapping[str, JsonValue]:
    tables = listed(document, "schema")
    return next((table for table in tables if name in ("", table.get("name"))), {})


def _columns(
    properties: Sequence[Mapping[str, JsonValue]], above: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    for each in properties:
        path = (*above, str(each.get("name")))
        name = path_text(path).casefold()
        kind = next((str(each[key]) for key in _TYPES if each.get(key)), "any type")
        yield f"column {name}", kind.replace(" ", "").lower()
        flags = [f"{key} {each[key]}" for key in _FLAGS if each.get(key) not in (None, False, -1)]
        if flags:
            yield f"key of {name}", ", ".join(flags)
        sources = each.get(_SOURCES)
        if isinstance(sources, list) and sources and path[-1] == DATA:
            yield f"sources of {name}", ", ".join(sorted(map(str, sources)))
        yield from _columns(listed(each, "properties"), path)
        items = each.get("items")
        while isinstance(items, dict):
            yield from _columns(listed(items, "properties"), path)
            items = items.get("items")


# The contract of an output from what its folder holds, and whether another one is kept.


def output_contract(
    bundle: Bundle, store: ObjectStore, version: str = FIRST_VERSION
) -> dict[str, JsonValue]:
    """The contract of what an output publishes now."""
    return _current(bundle, store, version)[0]


def contract_deviations(
    contract: Mapping[str, JsonValue], bundle: Bundle, store: ObjectStore, now: EpochNanos
) -> tuple[Deviation, ...]:
    """Return differences between a contract and an output, those that break the contract first."""
    current, newest = _current(bundle, store, FIRST_VERSION)
    tables = contract.get("schema")
    listed = tables if isinstance(tables, list) else []
    names = [str(one.get("name")) for one in listed if isinstance(one, dict)]
    if bundle.output.name not in names:
        raise ArgumentInvalid(
            "the contract is about something else",
            path="schema",
            found=", ".join(names) or "no object",
            expected=f"an object named {bundle.output.name}",
            hint="name the contract of this output, or write one with 'snaploom contract'",
        )
    found = deviations(contract, current)
    kept = statements(contract, current)
    broken = tuple(_of_data(kept, bundle, newest, now))
    return (*broken, *found)


def _standard(option: str) -> type[BaseModel]:
    """The model of the standard's own library."""
    try:
        return contracts.OpenDataContractStandard
    except ModuleNotFoundError as error:
        if error.name != "open_data_contract_standard":
            raise
        raise ArgumentInvalid(
            "contracts are judged by the library of the standard, which is not installed",
            path=option,
            found="no open-data-contract-standard",
            expected="the extra `contracts`",
            hint="pip install 'snaploom[contracts]'",
        ) from None


def _current(
    bundle: Bundle, store: ObjectStore, version: str
) -> tuple[dict[str, JsonValue], SnapshotRecord]:
    state = EMPTY if is_unused(store) else open_folder(store).log.read()
    settings = refuse_empty(state, store.uri)
    newest = state.snapshots[-1]
    fields = parse_schema(
        with_partition(read_schema(store, newest.schema_hash), settings), ""
    ).fields
    table = PublishedTable(bundle, plan_offline(bundle).tree, Struct(fields[:-1], ""), fields[-1])
    document = contract_document(table, version)
    add_relationships(document, table, join_proofs(state, table.tree))
    return document, newest


def _of_data(
    kept: Mapping[str, str], bundle: Bundle, newest: SnapshotRecord, now: EpochNanos
) -> Iterator[Deviation]:
    """Promises that are declared as promised, and that the newest snapshot breaks."""
    freshness = bundle.output.spec.run.freshness
    latency = kept.get("service level latency")
    if freshness is not None and latency is not None:
        schedule = bundle.output.spec.run.schedule
        zone = schedule.time_zone if schedule is not None else "UTC"
        if plus_bounded(newest.created_at, freshness.max_age, zone) < now:
            found = f"the newest snapshot published at {format_instant(newest.created_at)}"
            yield Deviation(Verdict.BROKEN, "service level latency", latency, found)
    for check in newest.checks:
        if not check.holds and f"check {check.name}" in kept:
            found = f"{check.measured} in {format_instant(newest.time)}"
            yield Deviation(Verdict.BROKEN, f"check {check.name}", "that it holds", found)


# A contract in a file, judged by the standard's own library.

REQUIRED = ("apiVersion", "kind", "id", "version")
"""Fields that the standard demands of every contract; its library does not."""


class _File(NamedTuple):
    path: Path
    option: str


def read_contract(path: Path, option: str = "--check") -> Mapping[str, JsonValue]:
    """The contract in a YAML or JSON file that an option names.

    Raises:
        InvalidDeclarations: the file cannot be read, is no YAML, or no contract of the standard;
            with all that is wrong.
    """
    file = _File(path, option)
    texts, findings = read_files([path])
    if not texts:
        raise InvalidDeclarations(findings or [_wrong(file, "", "nothing", "one contract")])
    composed = compose(texts[0].text)
    faults = [composed.fault] if composed.fault else []
    faults += [fault for document in composed.documents for fault in document.faults]
    if faults:
        raise InvalidDeclarations(
            [
                _wrong(file, "", fault.message, "YAML that can be read", fault.hint)
                for fault in faults
            ]
        )
    documents = [plain(document.node) for document in composed.documents]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        found = f"{len(documents)} documents" if len(documents) != 1 else "no mapping"
        raise InvalidDeclarations([_wrong(file, "", found, "one contract")])
    contract = documents[0]
    wrong = list(_faults(file, contract))
    if wrong:
        raise InvalidDeclarations(wrong)
    return contract


def _faults(file: _File, contract: dict[str, JsonValue]) -> list[Finding]:
    found = [
        _wrong(file, key, "nothing", "a value, which the standard demands")
        for key in REQUIRED
        if contract.get(key) in (None, "")
    ]
    kind = contract.get("kind")
    if kind not in (None, "DataContract"):
        found.append(_wrong(file, "kind", str(kind), "DataContract"))
    version = str(contract.get("apiVersion") or "v3")
    if not version.startswith("v3."):
        found.append(_wrong(file, "apiVersion", version, "version 3 of the standard"))
    try:
        _standard(file.option).model_validate(contract)
    except ValidationError as error:
        found.extend(
            _wrong(file, ".".join(map(str, one["loc"])), str(one["input"])[:200], one["msg"])
            for one in error.errors()
        )
    return found


def _wrong(file: _File, place: str, found: str, expected: str, hint: str = "") -> Finding:
    return make_finding(
        "SL191",
        "this is not a contract of the Open Data Contract Standard",
        path=f"{file.option} {place}".strip(),
        found=found,
        expected=expected,
        hint=hint or "'snaploom contract' without --check writes one",
    ).model_copy(update={"file": str(file.path)})


# `snaploom contract`: the contract of an output, written or checked.


def contract(
    name: options.OutputName | None = None,
    /,
    *,
    file: options.Files | None = None,
    project: options.ProjectOptions = options.DEFAULT_PROJECT,
    check: Annotated[
        Path | None,
        Parameter(help="File with a contract to compare; omitted, the contract is written."),
    ] = None,
    relationships: Annotated[
        Path | None,
        Parameter(help="File with a contract whose relationships are written as declarations."),
    ] = None,
    contract_version: Annotated[
        str, Parameter(help="Version of the written contract.", show_default=True)
    ] = FIRST_VERSION,
    now: options.Now = None,
    allow: options.Allow = (),
    output: options.Form = OutputForm.TEXT,
) -> int:
    """Write the data contract of an output, or check whether one is kept.

    The contract is one of the Open Data Contract Standard, version 3: columns and types of the
    newest snapshot, keys, checks, service levels, sources, and relationships with what was proved
    of them. It is printed as YAML, and as JSON with `-o json`.

    With `--check`, a contract is compared with the declarations and with what is published. What
    it promises and is not so is marked with `!` and ends with 1; what it does not mention is marked
    with `+`. Text of people, such as descriptions and teams, is not compared.

    With `--relationships`, relationships of any contract are printed as DataRelationships; it takes
    no output.
    """
    if relationships is not None:
        return _read_relationships(relationships, name, output)
    if name is None or not file:
        raise options.refuse_request(
            "a contract is of one output",
            "OUTPUT",
            found=f"{name or 'no name'} and {'files' if file else 'no files'}",
            expected="the name of an OutputDataset and where it is declared",
            hint="snaploom contract NAME -f PATH",
        )
    declarations = project.read(file, allow)
    (bundle,), warnings = runnable_bundles(declarations, [name])
    print_findings(warnings, message_console())
    store = open_named(bundle.output.spec.output_folder.folder_uri)
    if check is not None:
        return _check(check, bundle, store, now, output)
    document = output_contract(bundle, store, contract_version)
    if output is OutputForm.JSON:
        print_json(document)
    else:
        text = yaml.dump(
            document, Dumper=TextDumper, sort_keys=False, allow_unicode=True, width=100
        )
        result_console().print(text, markup=False, end="")
    return 0


def _read_relationships(path: Path, name: str | None, output: OutputForm) -> int:
    if name is not None:
        raise options.refuse_request(
            "relationships are those of a file",
            "OUTPUT",
            found=name,
            expected="no name of an output beside --relationships",
            hint="leave the name out",
        )
    found = data_relationships(read_contract(path, "--relationships"))
    for note in found.notes:
        message_console().print(note, markup=False)
    if output is OutputForm.JSON:
        print_json([each.dump() for each in found.resources])
    else:
        result_console().print(to_yaml(found.resources), markup=False, end="")
    return 0 if found.resources else 1


def _check(
    path: Path, bundle: Bundle, store: ObjectStore, now: str | None, output: OutputForm
) -> int:
    contract_of_file = read_contract(path)
    found = contract_deviations(contract_of_file, bundle, store, options.instant_of(now))
    broken = [one for one in found if one.verdict is Verdict.BROKEN]
    if output is OutputForm.JSON:
        listed: list[JsonValue] = [one.document for one in found]
        print_json({"output": bundle.output.name, "kept": not broken, "deviations": listed})
    else:
        console = result_console()
        for one in found:
            style = "red" if one.verdict is Verdict.BROKEN else None
            console.print(str(one), markup=False, style=style)
        end = f"broken in {counted(len(broken), 'place')}" if broken else "kept"
        console.print(f"{bundle.output.name}: the contract is {end}.", markup=False)
    return int(bool(broken))
