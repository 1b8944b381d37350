"""What users of a version rely on, as data: kinds, chart, documents, commands, functions, names."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import cast

from generation.chart import values_schema
from generation.contracts import PLAN_KEYS, sample
from generation.metrics import metric_names
from generation.models import document_schema
from generation.pythonapi import RESULTS
from pydantic import BaseModel, JsonValue
from support.compatibility.commandchanges import (
    as_plain,
    command_changes,
    commands,
    from_plain,
    function,
)
from support.compatibility.schemachanges import Schema, Use, schema_changes

import snaploom
from snaploom.cli.main import build_app
from snaploom.loading.load import load
from snaploom.models.codes import CODES
from snaploom.models.crds import crd
from snaploom.models.kinds import KINDS
from snaploom.models.report import Report
from snaploom.planning.bundle import Bundle
from snaploom.planning.bundles import bundle_for

EXAMPLES = Path(__file__).parents[3] / "examples"
NAMES = "names.json"
COMMANDS = ("commands.json", "library.json")
SCHEMAS = {
    "chart-values.json": Use.WRITTEN,
    "report.json": Use.READ,
    "stored-report.json": Use.WRITTEN,
    "stored-bundle.json": Use.WRITTEN,
}
"""Files of schemas, and how users, or the next version, rely on each; kinds stand apart."""
_TEXTS = ("description", "title", "$comment", "$schema")
"""Keywords on which nothing depends."""


def interfaces() -> dict[str, JsonValue]:
    """Today's interfaces, by the file that each is kept in."""
    plain: dict[str, object] = {
        **{f"kinds/{kind.plural}.json": _kind(crd(kind)) for kind in KINDS},
        "chart-values.json": without_texts(values_schema()),
        "report.json": without_texts(document_schema(Report)),
        "stored-report.json": _stored(Report),
        "stored-bundle.json": _stored(Bundle),
        "commands.json": as_plain(commands(build_app())),
        "library.json": as_plain({name: function(each) for name, each in _functions()}),
        NAMES: {
            "plan": sorted(PLAN_KEYS),
            "findings": sorted(code.code for code in CODES),
            "metrics": sorted(metric_names()),
            "library": sorted(snaploom.__all__),
        },
    }
    return cast(dict[str, JsonValue], json.loads(json.dumps(plain)))


def documents() -> dict[str, str]:
    """What is stored by one version and read by the next, by file: of an example, in JSON."""
    resources = load([EXAMPLES / "flights"]).resources
    bundle = bundle_for("OutputDataset", "flights-wide", resources)
    return {
        "bundle.json": json.dumps(bundle.dump(), indent=1, sort_keys=True) + "\n",
        "report.json": sample("report.json"),
    }


def _stored(model: type[BaseModel]) -> dict[str, JsonValue]:
    """What a later version must accept of a document that this one wrote."""
    return without_texts(cast(dict[str, JsonValue], model.model_json_schema(by_alias=True)))


def _kind(definition: Mapping[str, object]) -> dict[str, JsonValue]:
    """What users rely on of the definition of a kind."""
    spec = cast(dict[str, JsonValue], definition["spec"])
    versions = cast(list[dict[str, JsonValue]], spec["versions"])
    return {
        "group": spec["group"],
        "names": spec["names"],
        "scope": spec["scope"],
        "versions": {
            str(version["name"]): {
                "served": version["served"],
                "subresources": sorted(cast(dict[str, JsonValue], version.get("subresources", {}))),
                **{
                    part: without_texts(schema)
                    for part, schema in _parts(version).items()
                    if part in ("spec", "status")
                },
            }
            for version in versions
        },
    }


def _parts(version: Mapping[str, JsonValue]) -> dict[str, dict[str, JsonValue]]:
    schema = cast(dict[str, dict[str, dict[str, dict[str, JsonValue]]]], version["schema"])
    return schema["openAPIV3Schema"]["properties"]


def _functions() -> Iterator[tuple[str, Callable[..., object]]]:
    for name in snaploom.__all__:
        found = getattr(snaploom, name)
        if inspect.isfunction(found):
            yield name, found
    for owner in (snaploom.Project, *RESULTS):
        for name, member in vars(owner).items():
            if inspect.isfunction(member) and not name.startswith("_"):
                yield f"{owner.__name__}.{name}", member


def without_texts(schema: Schema) -> dict[str, JsonValue]:
    """A schema without what is only read by people."""
    found: dict[str, JsonValue] = {}
    for keyword, value in schema.items():
        if keyword in _TEXTS or (keyword.startswith("x-") and "kubernetes" not in keyword):
            continue
        if keyword in ("properties", "$defs", "definitions") and isinstance(value, dict):
            found[keyword] = {
                name: without_texts(cast(Schema, inner)) for name, inner in value.items()
            }
        elif keyword == "x-kubernetes-validations" and isinstance(value, list):
            found[keyword] = [{"rule": cast(dict[str, JsonValue], each)["rule"]} for each in value]
        else:
            found[keyword] = _value(value)
    return found


def _value(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return without_texts(value)
    return [_value(each) for each in value] if isinstance(value, list) else value


def changes(before: Mapping[str, JsonValue], after: Mapping[str, JsonValue]) -> Iterator[str]:
    """Every change between two descriptions that breaks users, as `place: what`, in order."""
    for name, was in before.items():
        now = after.get(name)
        if now is None:
            yield f"{name}: removed"
        elif was == now:
            continue
        elif name.startswith("kinds/"):
            yield from _kind_changes(Path(name).stem, _object(was), _object(now))
        elif name in COMMANDS:
            yield from command_changes(
                from_plain(cast(dict[str, dict[str, object]], was)),
                from_plain(cast(dict[str, dict[str, object]], now)),
            )
        elif name == NAMES:
            yield from _names_removed(_object(was), _object(now))
        else:
            yield from schema_changes(_object(was), _object(now), SCHEMAS[name], Path(name).stem)


def _kind_changes(kind: str, was: Schema, now: Schema) -> Iterator[str]:
    for field in ("group", "scope"):
        if was[field] != now[field]:
            yield f"{kind}: {field} changed from {was[field]} to {now[field]}"
    names, found = _object(was["names"]), _object(now["names"])
    for field, value in names.items():
        missing = (
            sorted({*map(str, value)} - {*map(str, cast(list[JsonValue], found.get(field, [])))})
            if isinstance(value, list)
            else [] if found.get(field) == value else [str(value)]
        )  # fmt: skip
        yield from (f"{kind}: {field} {each} removed" for each in missing)
    for version, before in _object(was["versions"]).items():
        after = _object(_object(now["versions"]).get(version, {}))
        if not after.get("served"):
            yield f"{kind}: version {version} is not served any more"
            continue
        old = _object(before)
        for part in cast(list[JsonValue], old["subresources"]):
            if part not in cast(list[JsonValue], after["subresources"]):
                yield f"{kind}: subresource {part} removed"
        for part, use in (("spec", Use.WRITTEN), ("status", Use.STORED)):
            yield from schema_changes(
                _object(old[part]), _object(after[part]), use, f"{kind}.{part}"
            )


def _names_removed(was: Schema, now: Schema) -> Iterator[str]:
    for group, names in was.items():
        present = cast(list[JsonValue], now.get(group, []))
        for name in cast(list[JsonValue], names):
            if name not in present:
                yield f"{group}: {name} removed"


def _object(value: JsonValue) -> dict[str, JsonValue]:
    assert isinstance(value, dict)
    return value
