"""`snaploom index stats`: index usage statistics."""

from contextlib import suppress
from typing import Annotated

from cyclopts import Parameter
from pydantic import JsonValue

from snaploom.cli.console import OutputForm, print_json, result_console
from snaploom.cli.index.options import base_of, declared_places
from snaploom.cli.options import DEFAULT_PROJECT, Allow, Files, Form, ProjectOptions, refuse_request
from snaploom.errors import IndexNotFound
from snaploom.models.common import EpochNanos, format_instant
from snaploom.run.declarations import Declarations
from snaploom.run.folders import by_hadoop
from snaploom.run.indexes.indexrequests import find_index
from snaploom.skipping.lifecycle.description import UsedIndex, describe_usage
from snaploom.skipping.stores.usage import Recorded, Usage

NOT_RECORDED = "not recorded: this store keeps no notes about queries"


def stats(
    place: Annotated[
        str | None,
        Parameter(
            name="PLACE",
            help="The location of indexes; or (with `-f`) a SkippingIndex, omitted all of them.",
        ),
    ] = None,
    /,
    *,
    file: Files | None = None,
    project: ProjectOptions = DEFAULT_PROJECT,
    allow: Allow = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """Show usage statistics of each index, summed over all sessions; needs no Spark.

    A session writes down what it did each minute and when it ends; one that cannot write there,
    and one with `spark.snaploom.skipping.usage=false`, is not counted.
    """
    used = _declared(project.read(file, allow), place) if file else _located(place)
    if output is OutputForm.JSON:
        print_json([document(each) for each in used])
        return 0
    console = result_console()
    if not used:
        console.print("No skipping index is kept here.")
    for each in used:
        console.print(_label(each), markup=False)
        for name, value in _facts(each):
            console.print(f"  {name + ':':<10} {value}", markup=False)
    return 0


def _declared(declarations: Declarations, name: str | None) -> list[UsedIndex]:
    if name is not None:
        (place,) = declared_places(declarations, (name,))
        return [describe_usage(find_index(place, by_hadoop))]
    used = []
    for place in declared_places(declarations, ()):
        with suppress(IndexNotFound):  # declared, and not applied yet
            used.append(describe_usage(find_index(place, by_hadoop)))
    return used


def _located(location: str | None) -> list[UsedIndex]:
    if location is None:
        raise refuse_request(
            "no index is named",
            "PLACE",
            expected="the location of indexes, or -f FILES",
        )
    found = (describe_usage(store) for store in base_of(location).indexes())
    return [each for each in found if each.is_there]


def document(used: UsedIndex) -> JsonValue:
    """The contract of `-o json`."""
    definition, recorded = used.state.definition, used.recorded
    return {
        "target": _label(used),
        "store": used.uri,
        "state": used.state.phase.value,
        "message": used.problem or used.state.message,
        "indexes": [] if definition is None else [index.label for index in definition.indexes],
        "usage": None if recorded is None else _sums(recorded),
    }


def _sums(recorded: Recorded) -> JsonValue:
    usage = recorded.total
    return {
        "sessions": recorded.sessions,
        "leftOut": recorded.left_out,
        "reads": usage.reads,
        "served": usage.served,
        "files": usage.files,
        "droppedFiles": usage.dropped_files,
        "bytes": usage.bytes,
        "droppedBytes": usage.dropped_bytes,
        "seconds": round(usage.seconds, 6),
        "firstUsed": _instant(usage.first_used),
        "lastUsed": _instant(usage.last_used),
        "whyNot": dict(_by_count(usage)),
    }


def _facts(used: UsedIndex) -> list[tuple[str, str]]:
    facts = [("kept in", used.uri)]
    if used.problem:
        facts.append(("problem", used.problem))
    if used.state.definition is not None:
        labels = ", ".join(index.label for index in used.state.definition.indexes)
        facts.append(("indexes", labels))
    recorded = used.recorded
    if recorded is None:
        return [*facts, ("last used", NOT_RECORDED)]
    usage = recorded.total
    facts.append(("last used", _instant(usage.last_used) or "never, as far as is recorded"))
    if usage.reads:
        facts += [
            ("reads", f"{usage.reads:,} in {recorded.sessions:,} sessions"),
            ("served", f"{usage.served:,}, of which files were dropped"),
            ("files", f"{usage.dropped_files:,} of {usage.files:,} dropped"),
            ("bytes", f"{usage.dropped_bytes:,} of {usage.bytes:,} dropped"),
            ("took", f"{usage.seconds:.3f} s, {1e3 * usage.seconds / usage.reads:.2f} ms a read"),
        ]
    facts += [("why not", f"{times:,} times: {reason}") for reason, times in _by_count(usage)]
    if recorded.left_out:
        facts.append(("left out", f"{recorded.left_out} notes that this version cannot read"))
    return facts


def _by_count(usage: Usage) -> list[tuple[str, int]]:
    return sorted(usage.why_not.items(), key=lambda item: (-item[1], item[0]))


def _label(used: UsedIndex) -> str:
    definition = used.state.definition
    return used.uri if definition is None else definition.target.label


def _instant(time: EpochNanos) -> str | None:
    return format_instant(time) if time else None
