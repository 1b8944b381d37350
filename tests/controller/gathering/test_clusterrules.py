"""What a cluster refuses though a laptop takes it."""

from __future__ import annotations

import pytest
from support.declared.declarations import document

from snaploom.models.allowances import Allowances
from snaploom.models.skippingindex import SkippingIndex
from snaploom.validate.validator import validate
from snaploom_operator.gather.gatherer import cluster_findings


def an_index(host: str) -> SkippingIndex:
    spec = {
        "target": {"path": {"uri": "/data", "format": "parquet"}},
        "indexes": [{"type": "MIN_MAX", "column": "a"}],
        "store": {"openSearch": {"host": host, "port": 9200}},
    }
    return SkippingIndex.parse(document("SkippingIndex", "a", spec))


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "::1"])
def test_a_server_that_the_job_would_refuse_is_refused_before(host: str) -> None:
    index = an_index(host)
    (found,) = cluster_findings(index)
    assert (found.code, found.is_error) == ("SL190", True)
    entry = found.hint.rpartition("endpoints=")[2].removesuffix(")")
    assert cluster_findings(index, allow=Allowances(endpoints=(entry,))) == ()
    assert not [each for each in validate([index]) if each.code == "SL190"]


def test_no_entry_is_proposed_for_what_no_list_allows() -> None:
    (found,) = cluster_findings(an_index("169.254.169.254"))
    assert found.hint == "name another server"


def test_an_ordinary_server_is_accepted() -> None:
    assert cluster_findings(an_index("search.example")) == ()
