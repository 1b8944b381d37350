"""The docs show the figures of benchmarks, and draw how they have changed."""

from __future__ import annotations

import re

from generation.benchmarkhistory import Run, benchmark_pages, picture, runs
from support.documentation.pages import REPOSITORY


def run(**values: float) -> Run:
    goals = {"share": "<= 0.5", "recall": ">= 0.9", "runs": "= 30"}
    goals = {name: goal for name, goal in goals.items() if name in values}
    return Run(
        section="S", command="c", time="t", commit="c", machine="m", values=values, goals=goals
    )


def test_a_value_beyond_its_goal_is_marked() -> None:
    drawn = picture([run(share=0.4), run(share=0.6, recall=0.9, runs=31)])
    assert re.findall(r'class="(value[^"]*)"[^>]*>([^<]*)', drawn) == [
        ("value missed", "0.6"),
        ("value", "0.9"),
        ("value missed", "31"),
    ]


def test_a_line_has_a_point_for_each_run_with_a_value() -> None:
    drawn = picture([run(share=0.5, recall=1.0), run(recall=0.9), run(share=0.25, recall=0.9)])
    share, recall = re.findall(r'points="([^"]*)"', drawn)
    assert [len(points.split()) for points in (share, recall)] == [2, 3]
    (x1, y1), (x2, y2) = (map(float, point.split(",")) for point in share.split())
    assert x1 < x2
    assert y1 < y2  # half the value is nearer to the bottom


def test_every_section_with_goals_has_a_picture() -> None:
    sections = {run.section for run in runs() if run.goals}
    page = benchmark_pages()["benchmarks.md"]
    listed = {line.removeprefix("## ") for line in page.splitlines() if line[:3] == "## "}
    assert listed - {"Skipping beside peers"} == sections


def test_every_benchmark_is_run_by_one_command() -> None:
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    (listed,) = re.findall(r"^BENCHMARKS := (.*)$", makefile, re.MULTILINE)
    assert set(listed.split()) == set(re.findall(r"^bench-(\w+):", makefile, re.MULTILINE))
