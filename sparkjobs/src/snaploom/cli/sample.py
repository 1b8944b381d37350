"""`snaploom run --sample`: a share of the rows into a folder of its own, never to the output's.

The folder is begun under a name of its own, `OUTPUT-sample-F`, which is fixed for ever: so neither
a sample of another share, nor the output itself, whatever link or other name leads to its folder,
is ever published beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

from snaploom.cli.options import folder_uri, refuse_request
from snaploom.cli.outputruns import Elsewhere
from snaploom.jobs.declarations.declarationfiles import Declarations
from snaploom.models.codes import make_finding
from snaploom.models.common import CheckMode
from snaploom.models.finding import Finding, InvalidDeclarations
from snaploom.models.outputdataset import OutputDataset
from snaploom.planning.bundle import Bundle
from snaploom.planning.validation.outputfolder import folder_findings
from snaploom.planning.validation.overlaps import overlap


def sampling_elsewhere(
    declarations: Declarations, names: Sequence[str], sample: float | None, to: str | None
) -> Elsewhere | None:
    """How the output that is sampled is sent to another folder; None where nothing is sampled.

    Raises:
        InvalidDeclarations: only one of both options, several outputs, no `rootKey`, or a folder
            that some output publishes to.
    """
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
        raise InvalidDeclarations([_without_key(output)])
    folder = to if "://" in to else folder_uri(to)
    moved = _moved(output, f"{folder.rstrip('/')}/", sample)
    declared = [each for each in declarations.resources if isinstance(each, OutputDataset)]
    # The folder is compared with those of all outputs, of the sampled one too.
    overlaps = (overlap(moved, each) for each in declared)
    wrong = [*folder_findings(moved), *(found for found in overlaps if found is not None)]
    errors = [finding for finding in wrong if finding.is_error]
    if errors:
        found = f"{folder}: {errors[0].message}"
        raise refuse_request("name an absent or empty folder", "--to", found, "a folder of its own")

    def elsewhere(bundle: Bundle) -> Bundle:
        return bundle.model_copy(update={"output_dataset": moved})

    return elsewhere


def _moved(output: OutputDataset, folder: str, sample: float) -> OutputDataset:
    place = output.spec.output_folder.model_copy(
        update={"folder_uri": folder, "register_table": None}
    )
    # Expectations about all rows need not hold for a sample; their result is still shown.
    checks = tuple(
        check.model_copy(update={"mode": CheckMode.WARN}) for check in output.spec.checks
    )
    spec = output.spec.model_copy(update={"output_folder": place, "checks": checks})
    metadata = output.metadata.model_copy(update={"name": f"{output.name}-sample-{sample}"})
    return output.model_copy(update={"spec": spec, "metadata": metadata})


def _without_key(output: OutputDataset) -> Finding:
    return make_finding(
        "SL191",
        "without a key of the root no sample is the same twice",
        resource=output.identity,
        path="spec.dataModel.rootDataSource.rootKey",
        found="none",
        expected="the columns that identify a row of the root",
        hint="declare rootKey",
    )
