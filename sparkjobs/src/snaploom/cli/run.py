"""`snaploom run`, `plan`, `backfill`, `restate` and `run --sample`: weave what is due."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from snaploom.cli import console
from snaploom.cli.options import (
    DEFAULT_PROJECT,
    Acknowledged,
    Allow,
    Files,
    Form,
    KeepGoing,
    Limit,
    Now,
    OutputName,
    ParallelSnapshots,
    ProjectOptions,
    Strict,
    folder_uri,
    instant_of,
    refuse_request,
    refuse_unlisted_strict,
    time_of,
)
from snaploom.cli.progress import Elsewhere, weave_and_show
from snaploom.models.common import CheckMode
from snaploom.models.findings import InvalidDeclarations, make_finding
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.run import Accelerator
from snaploom.plan.bundle import Bundle
from snaploom.plan.times import Selection
from snaploom.policy.acceleration import VARIABLE
from snaploom.run.declarations import Declarations, combined_exit_code, runnable_bundles
from snaploom.run.session.providers import with_drivers
from snaploom.run.weaving.preflight import PlanRequest
from snaploom.run.weaving.requests import RunOptions, refuse_unacknowledged, span_of
from snaploom.run.weaving.runs import Planned, estimate_run, plan_output
from snaploom.validate.outputs import folder_findings, overlap

# `snaploom plan`: the join tree, and the very list that a run would visit.


def plan(
    name: OutputName,
    /,
    *,
    file: Files,
    project: ProjectOptions = DEFAULT_PROJECT,
    now: Now = None,
    offline: Annotated[
        bool, Parameter(help="Plan the join tree only, without data and Spark.")
    ] = False,
    strict: Strict = False,
    allow: Allow = (),
    output: Form = console.OutputForm.TEXT,
) -> int:
    """Show how an output is joined together, and what a run would publish now."""
    if offline and strict:
        refuse_unlisted_strict("--offline", "plan without --offline, which lists the root")
    moment = instant_of(now)
    declarations = project.read(file, allow)
    planned = plan_output(declarations, name, moment, offline=offline, strict=strict)
    show_plans([planned], declarations, output)
    return planned.exit_code


def show_plans(
    plans: Sequence[Planned], declarations: Declarations, form: console.OutputForm
) -> None:
    """Print plans: one as it is, several as a list; findings go to standard error."""
    if form is console.OutputForm.JSON:
        console.print_documents([planned.document for planned in plans])
    for planned in plans:
        if planned.plan is not None and form is console.OutputForm.TEXT:
            console.result_console().print(planned.text, markup=False, end="")
        console.print_findings(planned.findings, console.message_console())
        if planned.failure is not None:
            console.print_error(planned.failure, lambda finding: declarations.placed([finding])[0])


# `snaploom run --sample`: a share of the rows into a folder of its own, never to the output's.


def sampling_elsewhere(
    declarations: Declarations, names: Sequence[str], sample: float | None, to: str | None
) -> Elsewhere | None:
    """Return the redirection of the sampled output to another folder; None without a sample."""
    if sample is None and to is None:
        return None
    if sample is None or to is None:
        missing = "--to" if to is None else "--sample"
        raise refuse_request(
            "a sample has a folder of its own", missing, "nothing", "--sample and --to together"
        )
    if len(names) != 1:
        raise refuse_request("a folder holds one output", "OUTPUT", f"{len(names)} outputs", "one")
    output = declarations.bundle(names[0]).output
    if not output.spec.data_model.root_data_source.root_key:
        raise InvalidDeclarations(
            [
                make_finding(
                    "SL191",
                    "without a key of the root no sample is the same twice",
                    resource=output.identity,
                    path="spec.dataModel.rootDataSource.rootKey",
                    found="none",
                    expected="the columns that identify a row of the root",
                    hint="declare rootKey",
                )
            ]
        )
    folder = to if "://" in to else folder_uri(to)
    place = output.spec.output_folder.model_copy(
        update={"folder_uri": f"{folder.rstrip('/')}/", "register_table": None, "table": None}
    )
    # Expectations about all rows need not hold for a sample; their result is still shown.
    checks = tuple(
        check.model_copy(update={"mode": CheckMode.WARN}) for check in output.spec.checks
    )
    spec = output.spec.model_copy(update={"output_folder": place, "checks": checks})
    metadata = output.metadata.model_copy(update={"name": f"{output.name}-sample-{sample}"})
    moved = output.model_copy(update={"spec": spec, "metadata": metadata})
    declared = [each for each in declarations.resources if isinstance(each, OutputDataset)]
    # The folder is compared with those of all outputs, of the sampled one too.
    wrong = [*folder_findings(moved), *(f for each in declared for f in overlap(moved, each))]
    errors = [finding for finding in wrong if finding.is_error]
    if errors:
        found = f"{folder}: {errors[0].message}"
        raise refuse_request("name an absent or empty folder", "--to", found, "a folder of its own")

    def elsewhere(bundle: Bundle) -> Bundle:
        return bundle.model_copy(update={"output_dataset": moved})

    return elsewhere


# `snaploom backfill`: publish what is due in a span of history, a bounded number at a time.


def backfill(
    name: OutputName,
    /,
    *,
    file: Files,
    project: ProjectOptions = DEFAULT_PROJECT,
    from_: Annotated[
        str,
        Parameter(name="--from", help="Earliest snapshot time, ISO 8601 with `Z` or an offset."),
    ],
    to: Annotated[str, Parameter(help="End of the snapshot times, exclusive.")],
    limit: Limit = None,
    keep_going: KeepGoing = False,
    parallel_snapshots: ParallelSnapshots = 1,
    strict: Strict = False,
    estimate: Annotated[
        bool, Parameter(help="Estimate time and bytes, and publish nothing.")
    ] = False,
    now: Now = None,
    allow: Allow = (),
    output: Form = console.OutputForm.TEXT,
) -> int:
    """Publish what is due in a span of snapshot times, and nothing else.

    Prints an estimate first, from what is published. Published snapshots stay when it is stopped;
    the same command continues.
    """
    if estimate and strict:
        refuse_unlisted_strict("--estimate", "run 'snaploom plan --strict', which lists the root")
    moment, hint = instant_of(now), "write it as 2020-01-31T00:00:00Z"
    selection = span_of(time_of(from_, "--from", hint), time_of(to, "--to", hint), "--to")
    options = RunOptions(
        selection, limit, keep_going, parallel_snapshots=parallel_snapshots, is_strict=strict
    )
    declarations = project.read(file, allow)
    if not estimate:
        return weave_and_show(declarations, [name], moment, options, output)
    (bundle,), _ = runnable_bundles(declarations, [name])
    request = PlanRequest(bundle, moment, replace(options, allow=declarations.allow))
    found = estimate_run(request, with_drivers(declarations))
    if output is console.OutputForm.JSON:
        console.print_json(found.document)
    else:
        console.result_console().print(f"{name}: {found}", markup=False)
    return 0


# `snaploom restate`: publish a corrected version of a snapshot.


def restate(
    name: OutputName,
    /,
    *,
    file: Files,
    project: ProjectOptions = DEFAULT_PROJECT,
    time: Annotated[
        str, Parameter(help="Time of the published snapshot, as 'snaploom snapshots' shows it.")
    ],
    reason: Annotated[str, Parameter(help="Reason, for people; kept in the manifest.")] = "",
    acknowledge_readers: Acknowledged = False,
    now: Now = None,
    allow: Allow = (),
    output: Form = console.OutputForm.TEXT,
) -> int:
    """Weave a published snapshot again, and put the new version in place of the old one.

    Declarations and sources are taken as they are now. Readers see the old version or the new one,
    never both; the old one can be read by the number of an older manifest until `readerGrace` has
    passed and `gc` has run.
    """
    moment = instant_of(now)
    selection = Selection(restated=time_of(time, "--time", "'snaploom snapshots' lists the times"))
    refuse_unacknowledged(acknowledge_readers, "--acknowledge-readers")
    options = RunOptions(selection, reason=reason)
    return weave_and_show(project.read(file, allow), [name], moment, options, output)


# `snaploom run`: weave and publish every snapshot that is due.


def run(
    names: Annotated[
        tuple[str, ...], Parameter(name="OUTPUT", help="Names of OutputDatasets.")
    ] = (),
    /,
    *,
    file: Files,
    project: ProjectOptions = DEFAULT_PROJECT,
    all_outputs: Annotated[
        bool, Parameter(name="--all", help="Every OutputDataset of the files.")
    ] = False,
    now: Now = None,
    limit: Limit = None,
    keep_going: KeepGoing = False,
    sample: Annotated[
        float | None,
        Parameter(
            validator=Number(gt=0, lte=1),
            help="Share of the root's rows to weave, chosen by a hash of `rootKey`; with `--to`.",
        ),
    ] = None,
    to: Annotated[
        str | None,
        Parameter(help="Folder of the sample, as a URI or absolute path."),
    ] = None,
    parallel: Annotated[
        int,
        Parameter(
            validator=Number(gte=1),
            show_default=True,
            help="Outputs to weave at a time, in one Spark session.",
        ),
    ] = 1,
    parallel_snapshots: ParallelSnapshots = 1,
    strict: Strict = False,
    accelerator: Annotated[
        Accelerator | None,
        Parameter(
            help="Accelerator of Spark; omitted, that of the environment variable "
            f"`{VARIABLE}`, else of the declarations."
        ),
    ] = None,
    dry_run: Annotated[bool, Parameter(help="Show the plan instead of running it.")] = False,
    allow: Allow = (),
    output: Form = console.OutputForm.TEXT,
) -> int:
    """Weave and publish every snapshot that is due; those of one output in their order.

    An output that reads what another one publishes is woven after it.
    """
    moment = instant_of(now)
    declarations = project.read(file, allow)
    if bool(names) == all_outputs:
        raise refuse_request(
            "name the outputs to run, or give --all",
            "OUTPUT",
            found="names and --all" if names else "neither names nor --all",
            expected="one of the two",
            hint=f"{console.BEFORE_FILES}; outputs: "
            + (", ".join(declarations.output_names) or "none in these files"),
        )
    chosen = declarations.output_names if all_outputs else tuple(dict.fromkeys(names))
    if dry_run:
        plans = [
            plan_output(declarations, name, moment, limit=limit, strict=strict) for name in chosen
        ]
        show_plans(plans, declarations, output)
        return combined_exit_code([planned.exit_code for planned in plans])
    options = RunOptions(
        limit=limit,
        keep_going=keep_going,
        sample=sample,
        parallel=parallel,
        parallel_snapshots=parallel_snapshots,
        is_strict=strict,
        accelerator=accelerator,
    )
    elsewhere = sampling_elsewhere(declarations, chosen, sample, to)
    return weave_and_show(declarations, chosen, moment, options, output, elsewhere)
