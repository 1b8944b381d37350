"""The page of limits lists every constant that is named like one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from generation.errorclasses import OPERATOR, PACKAGE
from generation.limits import LIMITS, PAGE, Limit, constant
from support.documentation.pages import DOCS

from snaploom.loading.filetexts import MAX_BYTES

NAMED_SO = re.compile(r"(MOST|LARGEST|LONGEST|MAX)(_\w+)?")
OF_TEXTS_AND_NAMES = {
    "snaploom.cli.init:MOST_SHOWN",
    "snaploom.discovery.yamltext:MOST_LEFT_OUT",
    "snaploom.engine.failures:LONGEST_MESSAGE",
    "snaploom.engine.sources.files.text.recordchecks:LONGEST_SHOWN",
    "snaploom.engine.sources.files.text.valuechecks:LONGEST_SHOWN",
    "snaploom.jobs.clusterwork:MOST_LINES",
    "snaploom.jobs.reports.configmap:LONGEST_LABEL",
    "snaploom.jobs.reports.runrecord:LONGEST_MESSAGE",
    "snaploom.planning.schemas:MOST_DIGITS",
    "snaploom.storage.documentparser:LONGEST_FAULT",
    "snaploom.planning.picture:MOST_ALTERNATIVES",
    "snaploom.site.charts:MOST_LINES",
    "snaploom.site.charts:MOST_POINTS",
    "snaploom.site.fieldtree:MOST_COLUMNS",
    "snaploom.site.gaps:MOST_COUNTED",
    "snaploom.site.graphview:MOST_SHOWN",
    "snaploom.site.markup:LONGEST_TEXT",
    "snaploom.site.outputpage:MOST_CHANGES",
    "snaploom.site.sections:MOST_LINES",
    "snaploom.site.snapshottable:LONGEST_MARK",
    "snaploom.site.snapshottable:MOST_ROWS",
    "snaploom.planning.sources.databases.tablenames:MOST_PARTS",
    "snaploom.skipping.core.text:LONGEST_TEXT",
    "snaploom.skipping.core.text:MOST_PARTS",
    "snaploom.skipping.core.text:MOST_VALUES",
    "snaploom.interop.flint.metadata:LONGEST_NAME",
    "snaploom.skipping.spark.optimizer.decision:LONGEST_LABEL",
    "snaploom.skipping.spark.optimizer.decision:MOST_LABELS",
    "snaploom.skipping.stores.usage:LONGEST_REASON",
    "snaploom.skipping.stores.usage:MOST_REASONS",
    "snaploom.storage.statussummary:LONGEST_WARNING",
    "snaploom.sparkgate.gate:MOST_NAMED",
    "snaploom_operator.apply.events:LONGEST_INSTANCE",
    "snaploom_operator.apply.events:LONGEST_NAME",
    "snaploom_operator.apply.events:LONGEST_NOTE",
    "snaploom_operator.admission.request:LONGEST_MESSAGE",
    "snaploom_operator.admission.request:LONGEST_WARNING",
    "snaploom_operator.cluster.requests:LONGEST_MESSAGE",
    "snaploom_operator.submit.manifests:LONGEST_LABEL",
}
"""How much of a text people are shown, and how long names are: nothing ends there."""
OF_WORK = {
    "snaploom.discovery.columndates:MOST_DAYS",
    "snaploom.discovery.thresholds:LONGEST_KEY_TEXT",
    "snaploom.discovery.thresholds:MOST_COLUMNS_COMBINED",
    "snaploom.discovery.thresholds:MOST_ELEMENTS",
    "snaploom.discovery.thresholds:MOST_HEADS",
    "snaploom.discovery.thresholds:MOST_KEY_COLUMNS",
    "snaploom.discovery.thresholds:MOST_MANIFESTS",
    "snaploom.discovery.thresholds:MOST_SNAPSHOTS_READ",
    "snaploom.discovery.thresholds:MOST_WEAK",
    "snaploom.endpoints.connections:MOST_TRIES",
    "snaploom.cli.session:LONGEST",
    "snaploom.jobs.lineage.sender:LONGEST_ANSWER",
    "snaploom.jobs.sessionserver.place:LONGEST_PATH",
    "snaploom.jobs.sessionserver.server:LONGEST_REQUEST",
    "snaploom.loading.nearmisses:MOST_COMPARED",
    "snaploom.skipping.core.bloom:MOST_FUNCTIONS",
    "snaploom.interop.opensearch.client:MOST_SHARDS",
    "snaploom.skipping.stores.statelog:MOST_PRUNED",
    "snaploom.storage.claims:MOST_RENEWALS",
    "snaploom.storage.parquetfooters:MOST_PARTS",
    "snaploom.storage.pathnames:LARGEST",
    "snaploom_operator.verdicts:LARGEST_CACHE",
    "snaploom_operator.verdicts:LONGEST_LINE",
    "snaploom.skipping.advice.boundaries:MOST_RANK_BITS",
    "snaploom.skipping.advice.curves:MOST_BITS",
    "snaploom.skipping.advice.estimates:MOST_FILES",
    "snaploom.skipping.indexes.tokens:LARGEST_SIZE",
    "snaploom.skipping.spark.interfaces.advise:MOST_COLUMNS",
    "snaploom.interop.flintspark.filters:MOST_VALUES",
    "snaploom.skipping.spark.optimizer.usagerecorder:MOST_WAITING",
    "snaploom.skipping.spark.optimizer.requests:MOST_ROOTS",
    "snaploom.interop.opensearch.bulk:LARGEST_REQUEST",
    "snaploom.skipping.stores.usage:MOST_SESSIONS",
    "snaploom_operator.admission.judge:MOST_WAITING",
    "snaploom_operator.admission.shares:LONGEST_WAIT_SECONDS",
    "snaploom_operator.admission.shares:MOST_REMEMBERED",
    "snaploom_operator.cluster.lease:LONGEST_PROMISE",
    "snaploom_operator.cluster.requests:LONGEST_WAIT",
    "snaploom_operator.serve.pages:MOST_DOCUMENTS",
    "snaploom_operator.store.feed:LONGEST_RETRY_SECONDS",
}
"""How work is divided, paused and sampled: the result is the same, or an estimate."""


def constants() -> Iterator[str]:
    """Every constant that is named like a limit."""
    for package in (PACKAGE, OPERATOR):
        for file in package.rglob("*.py"):
            module = ".".join(file.relative_to(package.parent).with_suffix("").parts)
            for node in ast.parse(file.read_text("utf-8")).body:
                target = node.targets[0] if isinstance(node, ast.Assign) else None
                if isinstance(target, ast.Name) and NAMED_SO.fullmatch(target.id):
                    yield f"{module}:{target.id}"


def test_every_constant_named_like_a_limit_is_documented_or_no_limit() -> None:
    documented = {limit.where for limit in LIMITS}
    assert set(constants()) - documented == OF_TEXTS_AND_NAMES | OF_WORK


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.where)
def test_a_limit_has_a_number_and_a_purpose(limit: Limit) -> None:
    assert any(sign.isdigit() for sign in limit.value)
    assert limit.why.endswith(".")
    assert f"| {limit.what} | {limit.value} |" in (DOCS / PAGE).read_text("utf-8")


def test_numbers_are_those_of_the_code() -> None:
    assert constant("snaploom.loading.filetexts:MAX_BYTES") == MAX_BYTES == 4 * 1024**2
    assert Limit("snaploom.loading.filetexts:MAX_BYTES", "", "", "bytes").value == "4 MiB"
