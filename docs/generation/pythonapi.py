"""The page about the library: what `import snaploom` offers, with signatures and descriptions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import snaploom
from generation.markdown import NOTE
from snaploom import project
from snaploom.project import results

RESULTS = (
    results.Findings,
    results.Plan,
    results.Run,
    results.Runs,
    results.Diff,
    results.Checked,
    project.Pages,
    project.Status,
)
"""What methods of a project return."""
_MODULE = re.compile(r"\b(?:[a-z_]+\.)+(?=[A-Z])")


def python_page() -> str:
    """The page."""
    offered = [(name, getattr(snaploom, name)) for name in snaploom.__all__]
    functions = [(name, value) for name, value in offered if inspect.isfunction(value)]
    errors = [(n, v) for n, v in offered if inspect.isclass(v) and issubclass(v, Exception)]
    kinds = [
        (name, value)
        for name, value in offered
        if inspect.isclass(value) and not issubclass(value, Exception) and name != "Project"
    ]
    parts = [
        "# The library",
        NOTE,
        "`import snaploom as sl`; [Use it from Python](../how-to/python.md) shows how. Functions, "
        "the project and what it returns, the kinds, and errors. `Time` is a text of ISO 8601, a "
        "`datetime` or a `date`.",
        "## Functions",
        *(part for name, value in functions for part in _function(f"snaploom.{name}", value)),
        "## Project",
        *_members(snaploom.Project),
        "## Results",
        *(part for value in RESULTS for part in _result(value)),
        "## Kinds",
        "Each is the model of its kind, whose fields are those of the reference of kinds.",
        *(part for name, value in kinds for part in _kind(name, value)),
        "## Errors",
        *(f"**`snaploom.{name}`**: {_first(value)}" for name, value in errors),
    ]
    return "\n\n".join(parts) + "\n"


def _function(name: str, value: object) -> Iterator[str]:
    yield f"### {name}"
    yield f"```python\n{_signature(name, value)}\n```"
    yield _text(value)


def _members(owner: type) -> Iterator[str]:
    yield _text(owner)
    for name, member in vars(owner).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            yield f"**`{name}`**: {_first(member)}"
        elif inspect.isfunction(member):
            yield from _function(f"Project.{name}", member)


def _result(owner: type) -> Iterator[str]:
    yield f"### {owner.__name__}"
    yield _text(owner)
    lines = []
    for name, member in vars(owner).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            lines.append(f"- `{name}`: {_first(member)}")
        elif inspect.isfunction(member):
            lines.append(f"- `{name}()`: {_first(member)}")
    yield "\n".join(lines)


def _kind(name: str, value: type) -> Iterator[str]:
    yield f"### snaploom.{name}"
    yield f"```python\n{_signature(name, value.__init__)}\n```"
    yield _first(value)


def _signature(name: str, value: object) -> str:
    assert callable(value)
    signature = inspect.signature(value)
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    lines = []
    is_keyword = False
    for each in parameters:
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not is_keyword:
            lines.append("*")
            is_keyword = True
        default = "" if each.default is inspect.Parameter.empty else f" = {_default(each.default)}"
        lines.append(f"{each.name}: {_annotation(each.annotation)}{default}")
    returns = _annotation(signature.return_annotation)
    end = ")" if name[:1].isupper() and "." not in name else f") -> {returns}"
    return f"{name}(\n" + "".join(f"    {line},\n" for line in lines) + end


def _annotation(value: object) -> str:
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    return _MODULE.sub("", text.replace("str | datetime.datetime | datetime.date", "Time"))


def _default(value: object) -> str:
    return repr(value) if value is None or isinstance(value, bool | int | str | tuple) else "..."


def _first(value: object) -> str:
    return " ".join(_doc(value).split("\n\n")[0].split())


def _doc(value: object) -> str:
    return inspect.getdoc(value) or ""


def _text(value: object) -> str:
    """A docstring as Markdown: sections in bold, arguments as a list."""
    lines: list[str] = []
    for line in _doc(value).split("\n"):
        if line.endswith(":") and line[:-1] in {"Args", "Returns", "Raises"}:
            lines.append(f"*{line[:-1]}*\n")
        elif line.startswith("    ") and not line.startswith("     ") and ": " in line:
            name, _, text = line.strip().partition(": ")
            lines.append(f"- `{name}`: {text}")
        else:
            lines.append(f"  {line.strip()}" if line.startswith("     ") else line.strip())
    return "\n".join(lines).strip()
