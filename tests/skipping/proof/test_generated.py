"""Generated tables, indexes and conditions: no file with a row of the answer is left out.

Each test is one table, made from its layout and a seed, in one home of indexes, with an index set
for each index type; each condition is planned with each index set. A failure prints the smallest
case that it finds, and to see it again, one runs the test of that name. `SNAPLOOM_PROOF_SEEDS=20`
makes twenty tables of each layout.

Folders of ours see every layout with every seed. Each other home sees one layout a seed, another
one with the next seed, so that seven seeds bring every home together with every layout.
"""

import os
from collections.abc import Iterator

import pytest
from support.runner.proofscope import IS_WHOLE
from support.skipping.proofmetadata import VERSIONS
from support.skipping.prooftables import LAYOUTS

SEEDS = range(int(os.environ.get("SNAPLOOM_PROOF_SEEDS", "1")))

KINDS = ("xskipper", "exported", "opensearch fake", "opensearch real")
"""Homes beside the folder that see a layout a seed, as each version on trust does."""

SHORT = (
    "xskipper",
    "opensearch real",
    "imported 0 trusted",
    "imported 4 trusted",
    "imported 0 verified",
)
"""Homes beside the folder that a run sees which is no proof of the whole."""

VERIFIED = 2
"""Versions that are verified, for each seed: what is kept then is our own, however it was found."""


def plan() -> Iterator[tuple[str, str, int]]:
    """Which home sees which layout, by seed."""
    for seed in SEEDS:
        yield from (("folder", layout, seed) for layout in LAYOUTS)
        verified = [VERSIONS[(VERIFIED * seed + n) % len(VERSIONS)] for n in range(VERIFIED)]
        kinds = [
            *KINDS,
            *(f"imported {version} trusted" for version in VERSIONS),
            *(f"imported {version} verified" for version in verified),
        ]
        for place, kind in enumerate(kinds):
            if IS_WHOLE or len(SEEDS) > 1 or kind in SHORT:
                yield kind, LAYOUTS[(place + seed) % len(LAYOUTS)], seed


LEAST_SHARES = {
    "MIN_MAX": 0.4, "VALUE_SET": 0.4, "BLOOM_FILTER": 0.2, "PREFIX": 0.1, "TOKENS": 0.1,
    "EXPRESSION": 0.3, "GEO_BOX": 0.2, "PARTITION": 0.2, "WHERE": 0.02, "MIXED": 0.1,
    "REDUCED": 0.3,
}  # fmt: skip
"""How much of what could be dropped is dropped at least, in every table and in every home; of other
types the share is printed."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "layout", "seed"),
    [pytest.param(*p, marks=() if p[0] == "folder" else pytest.mark.long) for p in plan()],
)
def test_no_row_is_lost(home, generated, layout, seed, record_property):
    verdicts = generated(layout, seed).verdicts(home)
    shares = {label: verdict.share for label, verdict in verdicts.items()}
    record_property("cases", sum(verdict.cases for verdict in verdicts.values()))
    record_property("shares", {label: round(share, 2) for label, share in shares.items()})
    assert not {
        label: share for label, share in shares.items() if share < LEAST_SHARES.get(label, 0)
    }, f"hardly anything is skipped: {shares}"
