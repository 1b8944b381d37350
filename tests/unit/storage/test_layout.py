"""Names: their meaning, and that no other name is taken for ours."""

import pytest
from support.storage.folders import DAY, START

from snaploom.models.common import EpochNanos
from snaploom.output import layout
from snaploom.output.folder import Run

RUN_ID = "20200131T093000123Z-5be2a84c07d1"


def test_run_ids_sort_by_time_and_differ() -> None:
    ids = [layout.new_run_id(EpochNanos(START + n * DAY // 7)) for n in range(50)]
    assert ids == sorted(ids)
    assert len({layout.new_run_id(START) for _ in range(100)}) == 100


@pytest.mark.parametrize("nanos", [0, 1, 999_999_999, START + 500_000_000, -1])
def test_run_id_has_one_form_whatever_the_fraction(nanos: int) -> None:
    run_id = layout.new_run_id(EpochNanos(nanos))
    assert layout.is_run_id(run_id)
    assert Run(run_id, "0", lambda: START).run_id == run_id


@pytest.mark.parametrize("text", ["", "mine", RUN_ID + "x", "../" + RUN_ID, RUN_ID.upper() + "\n"])
def test_other_text_is_no_run_id(text: str) -> None:
    with pytest.raises(ValueError, match="not a run id"):
        Run(text, "0", lambda: START)


@pytest.mark.parametrize(
    ("staged", "ending"),
    [
        ("part-00000-6a1e-c000.snappy.parquet", ".snappy.parquet"),
        ("data/.staging/r/a/part-00000-c000.json.gz", ".json.gz"),
        ("part-00000.avro", ".avro"),
        ("part", ""),
    ],
)
def test_published_name_keeps_the_ending(staged: str, ending: str) -> None:
    key = layout.published_key("day=1", RUN_ID, "0123abcd", 7, staged)
    assert key == f"data/day=1/{RUN_ID}-0123abcd-00007{ending}"
    assert layout.run_of(key) == RUN_ID


@pytest.mark.parametrize(
    ("key", "run_id"),
    [
        (f"data/.staging/{RUN_ID}/a/part-0", RUN_ID),
        (f"data/.staging/{RUN_ID}/a/_temporary/0/x", RUN_ID),
        (f"data/.staging/{RUN_ID}", None),
        (f"data/.staging/x{RUN_ID}/a/part-0", None),
        (f"data/day=1/{RUN_ID}-0123abcd-00000.parquet", RUN_ID),
        (f"data/day=1/{RUN_ID}-0123abcd-100000.parquet", RUN_ID),
        (f"data/day=1/{RUN_ID}-0123abcd-00000.parquet/x", None),
        (f"data/day=1/x-{RUN_ID}-0123abcd-00000.parquet", None),
        (f"data/day=1/{RUN_ID}.parquet", None),
        (f"data/{RUN_ID}-0123abcd-00000.parquet", None),
        (f"other/day=1/{RUN_ID}-0123abcd-00000.parquet", None),
        ("data/day=1/part-00000.parquet", None),
    ],
)
def test_only_our_names_prove_a_run(key: str, run_id: str | None) -> None:
    assert layout.run_of(key) == run_id


@pytest.mark.parametrize("seq", [0, 1, 42, 10**19])
def test_sequence_is_read_back_from_its_key(seq: int) -> None:
    assert layout.sequence_of(layout.manifest_key(seq)) == seq
    assert layout.sequence_of(layout.checkpoint_key(seq)) == seq


@pytest.mark.parametrize(
    "key", ["metadata/manifest/1.json", "metadata/manifest/x", "metadata/_latest"]
)
def test_other_keys_have_no_sequence(key: str) -> None:
    assert layout.sequence_of(key) is None
