"""`snaploom diff` and `contract`: what changes would do, and what is promised."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import yaml
from cyclopts import Parameter
from cyclopts.validators import Number
from pydantic import JsonValue

from snaploom import ondemand
from snaploom.cli.console import (
    OutputForm,
    counted,
    message_console,
    print_findings,
    print_json,
    result_console,
    show_result,
    warn,
)
from snaploom.cli.options import (
    DEFAULT_PROJECT,
    Allow,
    Files,
    Form,
    Now,
    OutputName,
    ProjectOptions,
    instant_of,
    refuse_request,
)
from snaploom.files.objectstore import ObjectStore
from snaploom.models.common import EpochNanos
from snaploom.plan.bundle import Bundle
from snaploom.plan.differences import MOST_SAMPLES
from snaploom.run.contracts.check import (
    Verdict,
    contract_deviations,
    contract_reader,
    output_contract,
)
from snaploom.run.contracts.document import FIRST_VERSION
from snaploom.run.declarations import Declarations, runnable_bundles
from snaploom.run.folders import open_named
from snaploom.run.published.diff import SAMPLES, compare, data_diff_request
from snaploom.run.runevents import signal_handlers
from snaploom.run.session.providers import with_drivers
from snaploom.run.weaving.requests import PlanRequest, RunOptions
from snaploom.run.weaving.runs import preview

# `snaploom diff`: what changed declarations would do, before anything runs.


def diff(
    name: OutputName,
    /,
    *,
    file: Files,
    project: ProjectOptions = DEFAULT_PROJECT,
    against: Annotated[
        list[Path] | None,
        Parameter(
            consume_multiple=True,
            help="YAML files and folders with the declarations as they are; omitted, "
            "only published data is compared.",
        ),
    ] = None,
    offline: Annotated[
        bool,
        Parameter(help="Estimate deletions by retention without sources and Spark."),
    ] = False,
    data: Annotated[
        tuple[str, str] | None,
        Parameter(
            help="Compare rows instead of declarations: two versions of snapshots, each `TIME`, "
            "`TIME@NUMBER` (as of that manifest) or `TIME@dry-run` (as it would be woven now).",
        ),
    ] = None,
    samples: Annotated[
        int,
        Parameter(
            validator=Number(gte=0, lte=MOST_SAMPLES),
            show_default=True,
            help="With `--data`, rows of each kind to show; 0 shows no value of the data.",
        ),
    ] = SAMPLES,
    now: Now = None,
    allow: Allow = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """Show what the declarations would change in plan, schema and history; nothing is run.

    Deletions by retention depend on what the next run publishes: where snapshotAutoDelete has
    rules, the sources are listed for it, as `plan` does.

    Ends with 0 where all stays the same and with 1 where something differs, as `kubectl diff` does.
    Changes that a run would refuse are marked with `!`.

    With `--data`, rows of two versions of snapshots are matched by `rootKey` and compared column by
    column; both are read, or woven for a dry run, and nothing is written.
    """
    if data is not None:
        _refuse_with_data(against, offline)
    declarations = project.read(file, allow)
    (after,), warnings = runnable_bundles(declarations, [name])
    print_findings(warnings, message_console())
    moment = instant_of(now)
    if data is not None:
        return _diff_data(declarations, after, data, samples, moment, output)
    # What is replaced may be at fault; all that matters is that it can be read.
    before = project.read(against, allow).bundle(name) if against else None
    request = PlanRequest(after, moment, RunOptions(allow=declarations.allow))
    look = None if offline else partial(preview, request, with_drivers(declarations))
    comparison = compare(after, before, moment, look)
    for warning in comparison.warnings:
        warn(warning)
    if output is OutputForm.JSON:
        print_json(comparison.document)
    else:
        console = result_console()
        for difference in comparison.differences:
            style = "red" if difference.is_refused else None
            console.print(str(difference), markup=False, style=style)
        if not comparison.differences:
            where = " in the declarations" if comparison.warnings else ""
            console.print(f"{name}: nothing would change{where}.", markup=False)
    return int(bool(comparison.differences))


def _refuse_with_data(against: list[Path] | None, offline: bool) -> None:
    given = [
        option
        for option, is_given in (("--against", bool(against)), ("--offline", offline))
        if is_given
    ]
    if given:
        raise refuse_request(
            f"--data compares rows, and {' and '.join(given)} declarations",
            "--data",
            found=f"--data with {' and '.join(given)}",
            expected="one of the two",
            hint=f"leave out {' and '.join(given)}, or --data",
        )


def _diff_data(
    declarations: Declarations,
    bundle: Bundle,
    versions: tuple[str, str],
    samples: int,
    moment: EpochNanos,
    output: OutputForm,
) -> int:
    store = open_named(bundle.output.spec.output_folder.folder_uri)
    request = data_diff_request(bundle, store, *versions, samples, argument="--data")
    opened = with_drivers(declarations)
    with signal_handlers() as interruption:
        found = ondemand.compare_data(
            request, store, moment, interruption, declarations.allow, opened
        )
    show_result(found, output)
    return int(not found.is_same)


# `snaploom contract`: the contract of an output, written or checked.


def contract(
    name: OutputName,
    /,
    *,
    file: Files,
    project: ProjectOptions = DEFAULT_PROJECT,
    check: Annotated[
        Path | None,
        Parameter(help="File with a contract to compare; omitted, the contract is written."),
    ] = None,
    contract_version: Annotated[
        str, Parameter(help="Version of the written contract.", show_default=True)
    ] = FIRST_VERSION,
    now: Now = None,
    allow: Allow = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """Write the data contract of an output, or check whether one is kept.

    The contract is one of the Open Data Contract Standard, version 3: columns and types of the
    newest snapshot, keys, checks, service levels and sources. It is printed as YAML, and as JSON
    with `-o json`.

    With `--check`, a contract is compared with the declarations and with what is published. Broken
    promises are marked with `!` and end with 1; parts that it does not mention are marked with `+`.
    Text of people, such as descriptions and teams, is not compared.
    """
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
        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
        result_console().print(text, markup=False, end="")
    return 0


def _check(
    path: Path, bundle: Bundle, store: ObjectStore, now: str | None, output: OutputForm
) -> int:
    contract_of_file = contract_reader()(path)
    found = contract_deviations(contract_of_file, bundle, store, instant_of(now))
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
