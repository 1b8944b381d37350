"""What is cut has at most the bytes it may have as JSON, and loses no more than it must."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from snaploom.models.report import PublishedSnapshot
from snaploom_operator.conditions import fit_items, fit_text, fit_texts


def size(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode())


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(10, 60))
def test_cut_text_fits_and_is_the_beginning(text: str, most: int) -> None:
    cut = fit_text(text, most)
    assert size(cut) <= most
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))
    assert cut == text or size(text) > most
    assert fit_text(cut, most) == cut


@given(st.lists(st.integers(0, 10**9), max_size=20), st.integers(0, 500))
def test_cut_list_fits_and_is_the_beginning(rows: list[int], most: int) -> None:
    items = [PublishedSnapshot(time="t", rows=number) for number in rows]
    kept = fit_items(items, most)
    assert list(kept) == items[: len(kept)]
    assert sum(len(item.dump_json()) + 1 for item in kept) <= most
    assert fit_items(kept, most) == kept


def test_cut_texts_are_cut_each_and_together() -> None:
    assert fit_texts(["a" * 30, "b" * 30, "c"], most=29, most_each=12) == (
        "aaaaaaa…",
        "bbbbbbb…",
    )
