"""Facts about many files, against those about one."""

import os
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from snaploom.files.listed import last_change, local_tag
from snaploom.skipping.core.filetable import FileFacts, last_changes

TAGS = st.one_of(
    st.none(),
    st.sampled_from(["", "d41d8cd98f", "1.2", "1.2.3", "1.2\n", "x1.2", "1x2", ".", "1."]),
    st.builds("{}.{}".format, st.integers(0, 10**20 - 1), st.integers(0, 2**64 - 1)),
)


def test_facts_are_those_of_each_file(tmp_path: Path) -> None:
    facts, statuses = FileFacts(), []
    for number in range(3):
        path = tmp_path / str(number)
        path.write_bytes(b"x" * number)
        os.utime(path, ns=(0, 1_600_000_000_123_456_789 + number))
        statuses.append(path.stat())
        facts.add(statuses[-1])
    assert facts.lengths.to_pylist() == [0, 1, 2]
    assert facts.modified.to_pylist() == [each.st_mtime_ns // 1_000_000 for each in statuses]
    assert facts.tags.to_pylist() == [local_tag(each) for each in statuses]


def test_no_files_have_no_facts() -> None:
    facts = FileFacts()
    assert facts.tags == pa.array([], pa.large_string())
    assert list(last_changes(facts.modified, facts.tags)) == []


@given(rows=st.lists(st.tuples(st.integers(-(10**14), 10**14), TAGS), max_size=9))
def test_newest_times_are_those_of_each_file(rows: list[tuple[int, str | None]]) -> None:
    modified = pa.array([at for at, _ in rows], pa.int64())
    tags = pa.array([tag for _, tag in rows], pa.large_string())
    assert last_changes(modified, tags).tolist() == [last_change(at, tag) for at, tag in rows]
