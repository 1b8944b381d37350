"""Which changes of the command line, and of the library's functions, break scripts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from cyclopts import App
from cyclopts.argument import Argument
from generation.commandline import CODES_OF, commands_of, default_of, kind_of, names_of, takes_many


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
        """What messages call it."""
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
    """The opposite."""
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
