"""Names of runs are labels of DNS, and differ wherever runs do."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.models.run import RunAction, Trigger
from snaploom_operator.decide.runsteps import LONGEST_RUN, run_name

LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
TRIGGER = Trigger(declarations="a")


@given(st.sampled_from(["OutputDataset", "SkippingIndex"]), st.text(min_size=1), st.text())
def test_every_name_is_a_short_label(kind: str, name: str, uid: str) -> None:
    found = run_name(kind, name, uid, TRIGGER, 0, RunAction.RUN)
    assert len(found) <= LONGEST_RUN
    assert LABEL.fullmatch(found)


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        pytest.param("wide", "ods-wide-", id="as it is"),
        pytest.param("a.b_C", "ods-a-b-c-", id="cleaned"),
        pytest.param("x" * 253, "ods-" + "x" * 37 + "-", id="cut"),
        pytest.param("...", "ods-", id="nothing left"),
    ],
)
def test_name_begins_with_the_resources(name: str, begins: str) -> None:
    found = run_name("OutputDataset", name, "1", TRIGGER, 0, RunAction.RUN)
    assert re.fullmatch(re.escape(begins) + "[0-9a-f]{8}", found)


def test_same_run_has_the_same_name_and_any_other_another() -> None:
    def named(
        uid: str = "1", trigger: Trigger = TRIGGER, attempt: int = 0,
        action: RunAction = RunAction.RUN, before: str = "", taken: tuple[str, ...] = (),
    ) -> str:  # fmt: skip
        return run_name("OutputDataset", "wide", uid, trigger, attempt, action, before, taken)

    names = [
        named(),
        named(uid="2"),
        named(trigger=Trigger(declarations="b")),
        named(attempt=1),
        named(action=RunAction.DELETE),
        named(before="ods-wide-1"),
        named(taken=(named(),)),
    ]
    assert len(set(names)) == len(names)
    assert named() == named()
    assert names[-1] == named(taken=(named(),))
