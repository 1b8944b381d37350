"""What queries of virtual sources may contain, judged without Spark."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.declared.sources import READ_TIME, a_source, files
from support.declared.virtualsources import HOSTILE, at_any_time, over
from support.runner.proofscope import within_work

from snaploom.models.common import EpochNanos
from snaploom.models.findings import Finding
from snaploom.sources.queries.declared import bound, misplaced
from snaploom.validate.validator import validate

RAW = a_source(files("parquet", "/data/*", snapshot=READ_TIME), "raw")
INTERVALS = "select 1 interval_start, 2 interval_end from src"
AT = "{{ SNAPSHOT | UNIX_SECONDS }}"


def findings(spec: dict[str, object]) -> list[Finding]:
    return [finding for finding in validate([a_source(spec), RAW]) if finding.is_error]


@pytest.mark.parametrize("query", HOSTILE)
def test_a_hostile_query_is_refused_wherever_it_stands(query: str) -> None:
    data_query = query.replace("select ", f"select {AT} as at, ", 1)
    for spec in (
        over(query),
        at_any_time(data_query, INTERVALS),
        at_any_time(f"select id, {AT} from src", query),
    ):
        found = findings(spec)
        assert found
        assert {finding.code for finding in found} <= {"SL150", "SL151", "SL152", "SL153"}


@pytest.mark.parametrize(
    "query",
    [
        f"select a.* from src a join src b on a.id = b.id where a.since <= {AT}",
        f"with x as (select * from src), y as (select * from x) select * from y limit {AT}",
        f"with recursive n(i) as (select 1 union all select i + 1 from n where i < {AT}) "
        "select * from n join src",
        f"select '{{', id as `}}`, {AT} from src lateral view explode(array(1)) t as x",
    ],
)
def test_a_data_query_may_be_any_select_over_its_aliases(query: str) -> None:
    assert findings(at_any_time(query, INTERVALS)) == []


@pytest.mark.parametrize(
    "query",
    [
        f"select '{AT}' from src",
        f'select "at {AT}" from src',
        f"select id as `{AT}` from src",
        f"select id -- {AT}\nfrom src",
        f"select id /* {AT} */ from src",
        f"select id as t{AT} from src",
        f"select {AT}, r'{AT}' from src",
        "select {{ SNAPSHOT | UNIX_WEEKS }} from src",
        "select {{ SNAPSHOT }} from src",
        "select {{ snapshot | UNIX_SECONDS }} from src",
    ],
)
def test_a_placeholder_that_is_no_number_by_itself_is_refused(query: str) -> None:
    assert {finding.code for finding in findings(at_any_time(query, INTERVALS))} >= {"SL153"}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (f"select reflect {AT} from src", "SL151"),
        (f"select * from src, range {AT}", "SL152"),
    ],
)
def test_a_placeholder_is_judged_as_the_parentheses_that_it_becomes(query: str, code: str) -> None:
    assert [finding.code for finding in findings(at_any_time(query, INTERVALS))] == [code]


def test_placeholders_are_looked_for_in_linear_time_and_memory() -> None:
    text = "snaploom_placeholder" + "_" * 30_000 + " {{}}" * 6_000
    tracemalloc.start()
    with within_work(seconds=1):
        misplaced(text)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


@given(st.integers(-(10**13), 10**13))
def test_a_placeholder_becomes_a_whole_number_in_parentheses(millis: int) -> None:
    text = "-{{SNAPSHOT|UNIX_SECONDS}}, {{ SNAPSHOT | UNIX_MILLISECONDS }}"
    assert misplaced(text) == ()
    expected = f"-({millis // 1000}L), ({millis}L)"
    assert bound(text, EpochNanos(millis * 1_000_000)) == expected
