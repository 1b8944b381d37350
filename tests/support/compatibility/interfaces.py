"""What users of a version rely on, as data: kinds, chart, documents, commands, functions, names."""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from cyclopts import App
from cyclopts.argument import Argument
from generation.chart import values_schema
from generation.commandline import CODES_OF, commands_of, default_of, kind_of, names_of, takes_many
from generation.contracts import PLAN_KEYS, sample
from generation.metrics import metric_names
from generation.models import document_schema
from generation.pythonapi import RESULTS
from pydantic import BaseModel, JsonValue
from support.compatibility.schemachanges import Schema, Use, schema_changes

import snaploom
from snaploom.cli.main import build_app
from snaploom.errors import problems
from snaploom.loading.load import load
from snaploom.models.kinds import KINDS
from snaploom.models.report import Report
from snaploom.models.schemas import crd
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import bundle_for


@dataclass(frozen=True)
class Parameter:
    """An argument or an option of a command, or a parameter of a function."""

    names: tuple[str, ...]
    """All by which it may be given; none for an argument, which is given by its place."""
    kind: str = ""
    """Type, or the choices there are."""
    choices: tuple[str, ...] = ()
    is_required: bool = False
    takes_many: bool = False
    default: str = ""

    @property
    def label(self) -> str:
        return self.names[0] if self.names else "argument"


@dataclass(frozen=True)
class Command:
    """What can be called, and with what."""

    arguments: tuple[Parameter, ...] = ()
    """In order."""
    options: tuple[Parameter, ...] = ()
    exit_codes: str = ""


def commands(app: App) -> dict[str, Command]:
    """All commands of the command line, by what is typed."""
    return {name: _command(name, found) for name, found in commands_of(app)}


def _command(name: str, found: App) -> Command:
    shown = [item for item in found.assemble_argument_collection() if item.show]
    return Command(
        tuple(_parameter(item, ()) for item in shown if not item.name.startswith("-")),
        tuple(_parameter(item, names_of(item)) for item in shown if item.name.startswith("-")),
        CODES_OF[name],
    )


def _parameter(item: Argument, names: tuple[str, ...]) -> Parameter:
    choices = tuple(sorted(item.get_choices() or ()))
    return Parameter(
        names, "" if choices else kind_of(item), choices, item.required, takes_many(item),
        default_of(item),
    )  # fmt: skip


def function(called: Callable[..., object]) -> Command:
    """A function of the library: its parameters by place and by name."""
    arguments, options = [], []
    for name, found in inspect.signature(called).parameters.items():
        if name in ("self", "cls"):
            continue
        is_many = found.kind in (found.VAR_POSITIONAL, found.VAR_KEYWORD)
        is_required = found.default is found.empty and not is_many
        if found.kind in (found.POSITIONAL_ONLY, found.POSITIONAL_OR_KEYWORD, found.VAR_POSITIONAL):
            arguments.append(Parameter((), is_required=is_required, takes_many=is_many))
        if found.kind in (found.POSITIONAL_OR_KEYWORD, found.KEYWORD_ONLY):
            # By place it is required already.
            by_name = is_required and found.kind is found.KEYWORD_ONLY
            options.append(Parameter((name,), is_required=by_name))
    return Command(tuple(arguments), tuple(options))


def as_plain(found: dict[str, Command]) -> dict[str, object]:
    """A description that JSON can hold; what is empty or false is left out."""
    return {name: _without_empty(asdict(each)) for name, each in sorted(found.items())}


def _without_empty(value: object) -> object:
    if isinstance(value, dict):
        plain = {key: _without_empty(each) for key, each in value.items()}
        return {key: each for key, each in plain.items() if each not in ("", False, (), [])}
    return [_without_empty(each) for each in value] if isinstance(value, tuple) else value


def from_plain(plain: dict[str, dict[str, object]]) -> dict[str, Command]:
    return {
        name: Command(
            _parameters(each.get("arguments", ())),
            _parameters(each.get("options", ())),
            str(each.get("exit_codes", "")),
        )
        for name, each in plain.items()
    }


def _parameters(plain: object) -> tuple[Parameter, ...]:
    assert isinstance(plain, list | tuple)
    return tuple(
        Parameter(
            **{
                "names": (),
                **{k: tuple(v) if isinstance(v, list) else v for k, v in each.items()},
            }
        )
        for each in plain
    )


def command_changes(before: dict[str, Command], after: dict[str, Command]) -> Iterator[str]:
    """Every change that breaks a script, as `command: what`."""
    for name, was in before.items():
        if name not in after:
            yield f"{name}: removed"
            continue
        now = after[name]
        yield from (f"{name}: {text}" for text in _arguments(was.arguments, now.arguments))
        yield from (f"{name}: {text}" for text in _options(was.options, now.options))
        for code in _codes(was.exit_codes) - _codes(now.exit_codes):
            yield f"{name}: exit code {code} removed"


def _codes(text: str) -> set[str]:
    """Exit codes; what stands in brackets explains them."""
    parts = (part.strip().partition(" ")[0] for part in text.split(","))
    return {part for part in parts if part.isdigit()}


def _arguments(before: tuple[Parameter, ...], after: tuple[Parameter, ...]) -> Iterator[str]:
    for number, was in enumerate(before, 1):
        if number > len(after):
            yield f"argument {number} removed"
        else:
            yield from _parameter_changes(f"argument {number}", was, after[number - 1])
    for number, now in enumerate(after[len(before) :], len(before) + 1):
        if now.is_required:
            yield f"argument {number} is required now"


def _options(before: tuple[Parameter, ...], after: tuple[Parameter, ...]) -> Iterator[str]:
    by_name = {name: each for each in after for name in each.names}
    known = {name for each in before for name in each.names}
    for was in before:
        gone = [name for name in was.names if name not in by_name]
        yield from (f"{name} removed" for name in gone)
        if len(gone) < len(was.names):
            now = next(by_name[name] for name in was.names if name in by_name)
            yield from _parameter_changes(was.label, was, now)
    for now in after:
        if now.is_required and not known & {*now.names}:
            yield f"{now.label} is required now"


def _parameter_changes(label: str, was: Parameter, now: Parameter) -> Iterator[str]:
    if now.is_required and not was.is_required:
        yield f"{label} is required now"
    if was.takes_many and not now.takes_many:
        yield f"{label} takes only one value now"
    for choice in was.choices:
        if now.choices and choice not in now.choices:
            yield f"{label}: value {choice} removed"
    if now.choices and not was.choices:
        yield f"{label}: only some values are allowed now"
    elif was.kind and now.kind and was.kind != now.kind and now.kind != "text":
        yield f"{label}: type changed from {was.kind} to {now.kind}"
    if was.default != now.default:
        yield f"{label}: default changed from {was.default or 'none'} to {now.default or 'none'}"


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
            "findings": sorted(name for name, each in problems().items() if each.severity),
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
