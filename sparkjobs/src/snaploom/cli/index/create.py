"""`snaploom index create` and `build`: creates a skipping index; `build` also fills it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import OutputForm
from snaploom.cli.index.execution import carry_out
from snaploom.cli.index.indexoptions import (
    DEFAULT_PLACE,
    Items,
    PlaceOptions,
    Target,
    indexes_of,
    place_of,
)
from snaploom.cli.index.rendering import show_reports
from snaploom.cli.options import Form, refuse_request
from snaploom.jobs.indexes.indexrequests import IndexAction, IndexedPlace, IndexRequest
from snaploom.models.skippingindex import ParquetForm, RefreshMode
from snaploom.skipping.lifecycle.declaration import Declaration


@Parameter(name="*")
@dataclass(frozen=True)
class KeptOptions:
    """Content of the index, and its form."""

    where: Annotated[
        str,
        Parameter(
            name="--where", help="SQL over partition columns that chooses files; omitted, all."
        ),
    ] = ""
    """Which files."""
    mode: Annotated[
        RefreshMode, Parameter(name="--mode", help="What refreshes look at.", show_default=True)
    ] = RefreshMode.AUTO
    """Refresh mode."""
    form: Annotated[
        ParquetForm, Parameter(name="--form", help="Form of the store.", show_default=True)
    ] = ParquetForm.NATIVE
    """Form of the store."""
    footer_key_label: Annotated[
        str,
        Parameter(
            name="--footer-key-label",
            help="Key of the footers of an encrypted index; keys of single indexes are their "
            "parameter: `'price MIN_MAX(key_label = prices)'`.",
        ),
    ] = ""
    """Key of the footers."""
    plaintext_footer: Annotated[
        bool, Parameter(name="--plaintext-footer", help="Leave footers readable without a key.")
    ] = False
    """Whether footers stay readable without a key."""
    if_not_exists: Annotated[
        bool, Parameter(name="--if-not-exists", help="An index that exists is no fault.")
    ] = False
    """Whether an index that exists is left as it is."""


DEFAULT_KEPT = KeptOptions()


def create(
    target: Target,
    /,
    *,
    index: Items = (),
    kept: KeptOptions = DEFAULT_KEPT,
    place: PlaceOptions = DEFAULT_PLACE,
    output: Form = OutputForm.TEXT,
) -> int:
    """Create a skipping index; nothing is indexed before the first refresh."""
    return _declare(IndexAction.CREATE, target, index, kept, place, output)


def build(
    target: Target,
    /,
    *,
    index: Items = (),
    kept: KeptOptions = DEFAULT_KEPT,
    place: PlaceOptions = DEFAULT_PLACE,
    output: Form = OutputForm.TEXT,
) -> int:
    """Create a skipping index and index all files."""
    return _declare(IndexAction.BUILD, target, index, kept, place, output)


def _declare(
    action: IndexAction,
    target: str,
    items: tuple[str, ...],
    kept: KeptOptions,
    options: PlaceOptions,
    form: OutputForm,
) -> int:
    place = place_of(target, options)
    request = IndexRequest(
        action,
        place,
        declaration=_declaration(place, items, kept),
        ignore_if_exists=kept.if_not_exists,
    )
    show_reports(carry_out([request]), form)
    return 0


def _declaration(place: IndexedPlace, items: tuple[str, ...], kept: KeptOptions) -> Declaration:
    if place.declaration is None:
        if not items:
            raise refuse_request(
                "no index type is given",
                "--index",
                expected="one --index or more, such as --index 'price MIN_MAX'",
            )
        return Declaration(
            indexes=indexes_of(items),
            where=kept.where,
            mode=kept.mode,
            form=kept.form.value,
            footer_key_label=kept.footer_key_label,
            plaintext_footer=kept.plaintext_footer,
        )
    if items or kept != KeptOptions(if_not_exists=kept.if_not_exists):
        raise refuse_request(
            "what to keep is declared already",
            "--index",
            found=f"{place.declaration.owner}, and options that repeat it",
            expected="one of the two",
            hint="change the declaration, or leave -f out",
        )
    return place.declaration
