"""Lines of driver and operator become one log, in the order of time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from snaploom.confidential import visible_lines
from snaploom.models.common import EpochNanos, parse_instant
from snaploom_operator.cluster.client import LogLine
from snaploom_operator.commands.logs import Line, driver_line, merged, operator_line
from snaploom_operator.errors import ObjectMissing
from snaploom_operator.objects import Ref

AT = parse_instant("2026-01-01T00:00:01.234567891Z")
WIDE = Ref("OutputDataset", "team", "wide")


def logged(**fields: str) -> LogLine:
    return LogLine(AT, json.dumps({"time": "2026-01-01T00:00:01.234Z", "level": "info", **fields}))


def test_a_drivers_own_line_is_shown_as_people_read_it() -> None:
    line = driver_line(logged(message="published 7 rows", resource=str(WIDE), run="ods-1"))
    assert str(line) == "2026-01-01T00:00:01.234Z driver   INFO    published 7 rows"


@pytest.mark.parametrize("text", ["26/01/01 WARN TaskSetManager: Lost task", "{not json", "{}"])
def test_lines_of_spark_stay_unchanged(text: str) -> None:
    assert driver_line(LogLine(AT, text)).text == text


def test_the_operators_lines_about_others_are_left_out() -> None:
    ours = logged(message="a run ended", resource=str(WIDE), reason="RunFailed")
    found = operator_line(ours, WIDE)
    assert found is not None
    assert found.text == "INFO    a run ended reason=RunFailed"
    assert operator_line(logged(message="hello", resource=f"{WIDE}r"), WIDE) is None
    assert operator_line(logged(message=f"about {WIDE}"), WIDE) is None


def test_the_operators_form_for_people_is_understood() -> None:
    text = f"2026-01-01T00:00:01.234Z WARNING it is taken resource={WIDE} reason=NameTaken"
    found = operator_line(LogLine(AT, text), WIDE)
    assert found is not None
    assert found.text == "WARNING it is taken reason=NameTaken"
    assert operator_line(LogLine(AT, text), Ref("OutputDataset", "team", "wid")) is None


def test_a_traceback_follows_its_message() -> None:
    line = driver_line(logged(message="it failed", exception="Traceback\n  here"))
    assert line.text == "INFO    it failed\nTraceback\n  here"


FORGED = "\n2026-01-01T00:00:02Z operator INFO    a run ended"


@given(text=st.text(st.one_of(st.characters(), st.sampled_from("\x1b\x9b\r\n\u202e\u2028"))))
@example(text=FORGED)
@example(text="\x1b[2K\rpublished 9 rows")
@example(text='{"message": ' + "[" * 100_000)
@example(text=json.dumps({"message": f"it failed{FORGED}", "exception": FORGED}))
def test_text_of_a_driver_moves_no_cursor_and_forges_no_line(text: str) -> None:
    first, *more = str(driver_line(LogLine(AT, text))).split("\n")
    assert first.startswith("2026-01-01T00:00:01.234Z driver   ")
    assert all(line.startswith("  ") for line in more)
    assert visible_lines("".join(more) + first) == "".join(more) + first


async def lines_at(source: str, *times: int) -> AsyncIterator[Line]:
    for time in times:
        yield Line(EpochNanos(time), source, "")
        await asyncio.sleep(0)


async def test_lines_come_in_the_order_of_time() -> None:
    logs = [lines_at("driver", 1, 4, 5), lines_at("operator", 2, 3, 6)]
    found = [line.time async for line in merged(logs, is_followed=False)]
    assert found == [1, 2, 3, 4, 5, 6]


async def test_lines_that_are_followed_come_before_the_end() -> None:
    more = asyncio.Event()

    async def goes_on() -> AsyncIterator[Line]:
        yield Line(EpochNanos(2), "driver", "")
        await more.wait()
        yield Line(EpochNanos(3), "driver", "")

    lines = merged([goes_on(), lines_at("operator", 1)], is_followed=True)
    assert [(await anext(lines)).time for _ in range(2)] == [1, 2]
    more.set()
    assert [line.time async for line in lines] == [3]


async def test_a_log_that_breaks_off_is_an_error_behind_its_lines() -> None:
    async def breaks() -> AsyncIterator[Line]:
        yield Line(EpochNanos(1), "driver", "")
        raise ObjectMissing("the pod is gone")

    lines = merged([breaks()], is_followed=False)
    assert (await anext(lines)).time == 1
    with pytest.raises(ObjectMissing):
        await anext(lines)
