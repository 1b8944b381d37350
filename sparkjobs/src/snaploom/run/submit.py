"""Runs by `spark-submit .../snaploom/run/submit.py --config a.yaml b.yaml` (rule W33).

Weaves every OutputDataset that the files declare, with the indexes that follow its publications;
then makes every other SkippingIndex of the files what it declares. Lines for people go to standard
error; standard output has one Report in JSON a line. `spark-submit` merges the two streams of a
program; Reports are the lines that begin with `{`. The Report of an index names
`SkippingIndex/name` as its output. Exit codes are those of `snaploom run --all`.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from snaploom.confidential import json_visible, remember_environment, visible_lines
from snaploom.errors import SnaploomError
from snaploom.loading.project import chosen_variables
from snaploom.localfiles import end_process
from snaploom.models.common import EpochNanos, now, parse_instant
from snaploom.models.report import Report
from snaploom.policy.pods import allowances_of
from snaploom.run.declarations import (
    Declarations,
    combined_exit_code,
    finished_report,
    read_declarations,
    report_exit_code,
    runnable_bundles,
    unstarted_report,
)
from snaploom.run.indexes import indexrequests
from snaploom.run.indexes.jobs import carry_out
from snaploom.run.joblog import error_lines, finding_lines, writing_lines
from snaploom.run.runevents import Interruption, signal_handlers
from snaploom.run.session.providers import index_places
from snaploom.run.weaving.requests import RunOptions, RunRequest
from snaploom.run.weaving.runs import weave_outputs


def main(arguments: Sequence[str] | None = None) -> int:
    """Weave every output and apply every index of some files; the exit code."""
    asked = _parser().parse_args(arguments)
    remember_environment(os.environ)
    moment = now() if asked.now is None else asked.now
    with signal_handlers() as interruption:
        try:
            allow = allowances_of(os.environ, asked.allow)
            choice = chosen_variables(asked.env, asked.set)
        except SnaploomError as error:
            _print(error_lines(error))
            return error.exit_code
        declarations = read_declarations(asked.config, allow, choice)
        outputs = declarations.output_names
        followed = frozenset(
            name
            for output in outputs
            for name in indexrequests.indexes_on_publish(declarations, output)
        )
        others = [name for name in indexrequests.index_names(declarations) if name not in followed]
        try:
            places = [indexrequests.place_of_resource(declarations, name) for name in others]
            reports = _weave(declarations, moment, asked.limit, interruption, bool(places))
        except SnaploomError as error:
            _print(error_lines(error))
            names = [*declarations.output_names, *(f"SkippingIndex/{name}" for name in others)]
            _print_reports(unstarted_report(name, moment, error) for name in names)
            return error.exit_code
        reports = (*reports, *(_apply(place, interruption) for place in places))
    for report in reports:
        _print(finding_lines(declarations.placed(report.findings)))
        if report.message:
            _print([f"error {report.output}: {report.message}"])
    _print_reports(reports)
    return combined_exit_code([report_exit_code(report) for report in reports])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Weave every snapshot that is due, and refresh indexes."
    )
    parser.add_argument(
        "--config", nargs="+", required=True, type=Path, help="YAML files and folders"
    )
    parser.add_argument("--now", type=parse_instant, help="time to plan for; omitted, the present")
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="LIST=ENTRY",
        help="what the files may use beyond the built-in lists; may be repeated",
    )
    parser.add_argument("--env", help="environment of the project file, snaploom.yaml")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="value of a variable, before that of the project file; may be repeated",
    )
    parser.add_argument("--limit", type=_positive, help="snapshots to publish at most, an output")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("expected a number from 1")
    return number


def _apply(place: indexrequests.IndexedPlace, interruption: Interruption) -> Report:
    """Make an index what a resource declares; after an interruption nothing is done any more."""
    started = now()
    request = indexrequests.IndexRequest(indexrequests.IndexAction.APPLY, place)
    try:
        interruption.check()
        (done,) = carry_out([request], lambda *_: None, lambda: None, interruption)
    except SnaploomError as error:
        return unstarted_report(place.owner, started, error)
    _print(f"warning {place.owner}: {warning}" for warning in done.warnings)
    _print(f"{place.owner}: {step}" for step in done.done or ("nothing to do",))
    return finished_report(place.owner, started)


def _weave(
    declarations: Declarations,
    moment: EpochNanos,
    limit: int | None,
    interruption: Interruption,
    has_other_work: bool,
) -> tuple[Report, ...]:
    if has_other_work and not declarations.output_names:
        return ()
    bundles, warnings = runnable_bundles(declarations, declarations.output_names)
    indexes = index_places(declarations, lambda text: _print([f"warning {text}"]))
    _print(finding_lines(warnings))
    emit = writing_lines(lambda line: _print([line]))
    options = RunOptions(limit=limit, allow=declarations.allow)
    request = RunRequest(bundles, moment, emit, interruption, options=options)
    return weave_outputs(request, indexes)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stderr.write(f"{visible_lines(line)}\n")
    sys.stderr.flush()


def _print_reports(reports: Iterable[Report]) -> None:
    for report in reports:
        sys.stdout.write(json_visible(json.dumps(report.dump(), ensure_ascii=False)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # Started by its path, this folder comes first, and modules here would hide those of libraries:
    # `events` is one that OpenSearch's client imports.
    here = Path(__file__).resolve().parent
    sys.path[:] = [place for place in sys.path if Path(place).resolve() != here]
    end_process(main())
