"""Limits of store forms and of encryption, checked at declaration."""

from __future__ import annotations

from collections.abc import Mapping

from snaploom.errors import IndexNotPossible
from snaploom.models.skippingindex import ParquetForm
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.stores.forms import registered_forms, store_form

NATIVE, OPEN_SEARCH = ParquetForm.NATIVE.value, "OPENSEARCH"
FORMS = (*(form.value for form in ParquetForm), OPEN_SEARCH)
"""Forms of a store that can be declared."""
WITHOUT_OTHERS = (NATIVE, OPEN_SEARCH)
"""Forms that hold our own rows and nothing beside them."""


def parameters_in(
    form: str, index_type: str, parameters: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Parameters as they are kept, with those that the form of the store adds."""
    found = registered_forms().get(form)
    known = parameters if found is None else found.parameters(index_type, parameters)
    return tuple(sorted(known.items()))


def require_form(form: str) -> None:
    """Raise `IndexNotPossible` for changes of an index whose form is not registered here."""
    if form in FORMS and form not in WITHOUT_OTHERS:
        store_form(form)


def check_form(definition: SkippingDefinition) -> None:
    """Raise `IndexNotPossible`, with all reasons, for what the form of the store cannot hold."""
    if definition.form not in FORMS:
        raise IndexNotPossible(
            "there is no such form of a store",
            found=definition.form,
            expected=", ".join(FORMS),
            hint="choose one of these forms",
        )
    labelled = [index.label for index in definition.indexes if index.key_label]
    if definition.form == OPEN_SEARCH and (labelled or definition.footer_key_label):
        raise IndexNotPossible(
            "nothing is encrypted by keys in OpenSearch",
            found=", ".join(labelled) or "a key of footers",
            expected="an index without key labels",
            hint="keep the index in a folder, in the form NATIVE or XSKIPPER",
        )
    if labelled and not definition.footer_key_label:
        raise IndexNotPossible(
            "an encrypted index needs a key of its footers, too",
            found=f"a key of {', '.join(labelled)}, and none of the footers",
            expected="footer_key_label (in a resource encryption.footerKeyLabel)",
            hint="name that key, or leave the index unencrypted",
        )
    if definition.plaintext_footer and not definition.footer_key_label:
        raise IndexNotPossible(
            "footers in plain text belong to an encrypted index",
            found="plaintext_footer without a key",
            expected="footer_key_label (in a resource encryption.footerKeyLabel)",
            hint="leave the option out, or encrypt the index",
        )
    if definition.form not in WITHOUT_OTHERS:
        store_form(definition.form).check(definition)
