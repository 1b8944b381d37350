"""`snaploom index sort`: rewrite files so that minimum and maximum say more about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Protocol, cast

from cyclopts import Parameter

from snaploom import lazy
from snaploom.cli.console import OutputForm, print_json, result_console
from snaploom.cli.index.advising import readable_place
from snaploom.cli.index.options import DEFAULT_PLACE, PlaceOptions, Target, refuse_request
from snaploom.cli.options import Form, folder_uri
from snaploom.jobs.indexrequests import IndexedPlace
from snaploom.jobs.interruption import Interruption, hearing_signals
from snaploom.skipping.advice.curves import Curve
from snaploom.skipping.advice.sorting import TARGET_FILE_SIZE, SortRequest, SortResult

_MEBIBYTE = 1 << 20


class SortFiles(Protocol):
    """`snaploom.jobs.indexadvice.sort_files`, which brings Spark along."""

    def __call__(
        self,
        place: IndexedPlace,
        folder: str,
        request: SortRequest,
        on_tick: Callable[[], None],
        interruption: Interruption,
    ) -> SortResult:
        """Write a new folder."""
        ...


def sort(
    target: Target,
    into: Annotated[str, Parameter(name="INTO", help="The new folder, which is absent or empty.")],
    /,
    *,
    by: Annotated[
        tuple[str, ...],
        Parameter(name="--by", help="Column to sort by; the most important one first."),
    ],
    curve: Annotated[
        Curve,
        Parameter(
            name="--curve",
            help="LINEAR serves the first column alone, the others serve all.",
            show_default=True,
        ),
    ] = Curve.HILBERT,
    file_size: Annotated[
        int, Parameter(name="--file-size", help="MiB of a file, about.", show_default=True)
    ] = TARGET_FILE_SIZE // _MEBIBYTE,
    place: PlaceOptions = DEFAULT_PLACE,
    output: Form = OutputForm.TEXT,
) -> int:
    """Write the same rows in another order, into a new folder of the same format and partitions.

    The rows are read back and compared before the folder appears. The files that are read stay.
    """
    if file_size < 1:
        raise refuse_request("files cannot be so small", "--file-size", str(file_size), "1 or more")
    request = SortRequest(by, curve, file_size * _MEBIBYTE)
    with hearing_signals() as interruption:
        work = cast(SortFiles, lazy.resolve(lazy.SORT))
        result = work(
            readable_place(target, place), folder_uri(into), request, lambda: None, interruption
        )
    if output is OutputForm.JSON:
        print_json(result.document)
    else:
        result_console().print(str(result), markup=False)
    return 0
