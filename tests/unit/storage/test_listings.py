"""A cached listing is used as it was written, for files as they were."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.files.local import LocalObjectStore
from snaploom.models.common import EpochNanos
from snaploom.output import caches, layout
from snaploom.output.caches import FileFacts, Listings, SourceListing

PRESENT = EpochNanos(1_700_000_000_000_000_000)
SETTLED = EpochNanos(PRESENT - caches.SETTLED_AFTER)
OLD = EpochNanos(0)
FACTS = FileFacts("{}", "day string", ("2020-01-01",))

facts = st.builds(
    FileFacts,
    schema=st.none() | st.sampled_from(["{}", '{"a": "ü"}']),
    column=st.none() | st.just("n bigint"),
    values=st.lists(st.integers() | st.text(), max_size=3).map(tuple),
)


def opened(place: Path) -> Listings:
    return Listings(LocalObjectStore(place, create=True), PRESENT)


def left(place: Path, known: dict[str, FileFacts], about: str = "a") -> Path:
    """A document of an earlier run."""
    earlier = opened(place)
    listing = earlier.of("orders", about)
    for fingerprint, each in known.items():
        listing.learn(fingerprint, OLD, each)
    earlier.keep()
    return place / layout.listing_key("orders")


@given(st.dictionaries(st.text("0123456789abcdef", min_size=1), facts))
def test_next_run_finds_the_facts_of_this_one(
    tmp_path_factory: pytest.TempPathFactory, known: dict[str, FileFacts]
) -> None:
    place = tmp_path_factory.mktemp("listings")
    left(place, known)
    found = opened(place).of("orders", "a")
    assert {fingerprint: found.find(fingerprint) for fingerprint in known} == known


@pytest.mark.parametrize("fault", ["cut", "changed", "foreign", "format", "about", "empty"])
def test_document_that_is_not_as_it_was_written_is_ignored_and_written_anew(
    tmp_path: Path, fault: str
) -> None:
    file = left(tmp_path, {"f": FACTS})
    content = file.read_bytes()
    match fault:
        case "cut":
            file.write_bytes(content[:-20])
        case "changed":
            file.write_bytes(content.replace(b"2020-01-01", b"2020-01-02"))
        case "foreign":
            file.write_bytes(b"PAR1\n\xff\n")
        case "empty":
            file.write_bytes(b"")
        case "format":
            text = content.split(b"\n")[1].replace(b'"format":1', b'"format":2')
            head = json.dumps({"sha256": hashlib.sha256(text).hexdigest()}).encode()
            file.write_bytes(head + b"\n" + text + b"\n")
    again = opened(tmp_path)
    listing = again.of("orders", "b" if fault == "about" else "a")
    assert listing.find("f") == FileFacts()
    listing.learn("f", OLD, FACTS)
    again.keep()
    assert opened(tmp_path).of("orders", listing.about).find("f") == FACTS


@pytest.mark.parametrize(("modified", "is_kept"), [(SETTLED, True), (SETTLED + 1, False)])
def test_file_that_may_still_change_unseen_is_not_kept(
    tmp_path: Path, modified: EpochNanos, is_kept: bool
) -> None:
    this = opened(tmp_path)
    this.of("orders", "a").learn("f", EpochNanos(modified), FACTS)
    this.keep()
    assert (opened(tmp_path).of("orders", "a").find("f") == FACTS) is is_kept


def test_only_files_that_are_there_are_kept_and_only_sources_that_are_read(tmp_path: Path) -> None:
    left(tmp_path, {"gone": FACTS, "there": FACTS})
    this = opened(tmp_path)
    this.of("orders", "a").learn("there", OLD, FACTS)
    this.keep()
    found = opened(tmp_path).of("orders", "a")
    assert (found.find("gone"), found.find("there")) == (FileFacts(), FACTS)
    other = opened(tmp_path)
    other.of("customers", "a").learn("there", OLD, FACTS)
    other.keep()
    assert [p.name for p in (tmp_path / layout.LISTINGS).iterdir()] == [
        layout.listing_key("customers").rpartition("/")[2]
    ]


def test_document_is_bounded_by_files_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "MOST_KEPT", 5)
    listing = SourceListing("a", {}, SETTLED)
    for count, name in enumerate("abc"):
        listing.learn(name, OLD, FileFacts(None, "n bigint", tuple(range(count))))
    names = [name for known in listing.document().known for name in known.files]
    assert names == ["a", "b"]


def test_nothing_is_written_when_nothing_is_new(tmp_path: Path) -> None:
    file = left(tmp_path, {"f": FACTS})
    before = file.stat().st_ino
    left(tmp_path, {"f": FACTS})
    assert file.stat().st_ino == before
