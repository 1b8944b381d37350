"""What declarations may say already, but this version cannot carry out yet: refused, not half done.

The models are complete, so that declarations need not change later. What is not built is one clear
finding each: an error for what is planned or run, a warning for what is only validated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from snaploom.models.codes import make_finding
from snaploom.models.finding import Finding, Severity
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.outputfolder import DataFormat
from snaploom.models.resource import Resource
from snaploom.planning.bundle import Bundle


def unsupported(bundle: Bundle) -> tuple[Finding, ...]:
    """One error for every setting of a bundle that is not built yet; empty when it can run."""
    runnable = (bundle.output_dataset or bundle.skipping_index,)
    resources = (resource for resource in (*runnable, *bundle.data_sources) if resource is not None)
    return unsupported_in(resources, Severity.ERROR)


def unsupported_in(resources: Iterable[Resource], severity: Severity) -> tuple[Finding, ...]:
    """One finding for every setting of the resources that is not built yet."""
    return tuple(
        make_finding(
            "SL190",
            f"{what} is not built yet",
            resource=resource.identity,
            path=path,
            found=path.rpartition(".")[2],
            expected="a declaration without it",
            severity=severity,
        )
        for resource in resources
        for path, what in _settings(resource)
    )


def _settings(resource: Resource) -> Iterator[tuple[str, str]]:
    if not isinstance(resource, OutputDataset):
        return
    folder, path = resource.spec.output_folder, "spec.outputFolder"
    if folder.data_format is DataFormat.ICEBERG:
        yield f"{path}.dataFormat", "publishing as ICEBERG"
