"""Names of resources as people type them."""

import pytest

from snaploom.models.findings import InvalidDeclarations
from snaploom.models.kinds import KINDS
from snaploom_operator.commands.options import parse_name, parse_runnable


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_spelling_of_a_kind_names_it(kind) -> None:  # type: ignore[no-untyped-def]
    for spelling in (kind.name, kind.singular, kind.plural, kind.short_name):
        assert str(parse_name(f"{spelling}/orders")) == f"{kind.name}/orders"


def test_a_name_without_a_kind_is_an_output() -> None:
    assert str(parse_name("orders")) == "OutputDataset/orders"


@pytest.mark.parametrize("text", ["outputs/orders", "ods/", "/orders", ""])
def test_what_names_nothing_is_refused_with_the_kinds(text: str) -> None:
    with pytest.raises(InvalidDeclarations) as refused:
        parse_name(text)
    assert "OutputDataset (ods)" in refused.value.findings[0].expected


def test_a_kind_without_runs_cannot_be_triggered() -> None:
    with pytest.raises(InvalidDeclarations, match="has no runs"):
        parse_runnable("dsrc/orders")
