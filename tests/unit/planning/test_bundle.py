"""A Bundle holds what its output refers to, to the end, and nothing else."""

from __future__ import annotations

import pytest
from support.declared.declarations import (
    Raw,
    complex_,
    document,
    files,
    model,
    output,
    parsed,
    put,
    simple,
)

from snaploom.models.findings import InvalidDeclarations
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import bundle_for


def applicator(name: str) -> Raw:
    selectors = [{"coordinateIncludeRegex": "a"}]
    return document("MetadataApplicator", name, {"fieldSelectors": selectors, "metadata": {}})


def virtual_model() -> list[Raw]:
    place = "SELECT {{ SNAPSHOT | UNIX_SECONDS }} FROM c0"
    return [
        *model()[1:-1],
        simple("customer", "SELECT a FROM c", "raw"),
        files("raw", metadataApplicators=["m2", "m1"]),
        complex_("deep", place, "deeper"),
        complex_("deeper", place, "deep", "leaf"),
        *(files(name) for name in ("leaf", "unread")),
        *(applicator(name) for name in ("m1", "m2", "m3")),
        output(
            **{
                "dataModel.otherDataSources": [
                    {"dataSource": "address", "fieldName": "address"},
                    {"dataSource": "deep", "fieldName": "deep", "pathMissingMode": "CONTINUE_WARN"},
                ]
            }
        ),
    ]


def test_references_are_followed_to_their_end() -> None:
    bundle = bundle_for("OutputDataset", "wide", parsed(virtual_model()))
    names = ["address", "customer", "deep", "deeper", "leaf", "raw"]
    assert [source.name for source in bundle.data_sources] == names
    assert [item.name for item in bundle.data_relationships] == ["customer-id"]
    assert [item.name for item in bundle.metadata_applicators] == ["m1", "m2"]


def test_the_order_of_files_does_not_matter() -> None:
    raws = virtual_model()
    bundles = [bundle_for("OutputDataset", "wide", parsed(r)) for r in (raws, raws[::-1])]
    assert bundles[0].dump_json() == bundles[1].dump_json()


def test_status_is_left_out_and_a_bundle_survives_its_round_trip() -> None:
    raws = virtual_model()
    put(raws[-1], "status", {"observedGeneration": 3})
    bundle = bundle_for("OutputDataset", "wide", parsed(raws))
    assert bundle.output.status is None
    assert Bundle.parse(bundle.dump()) == bundle


def test_the_bundle_of_an_index_holds_the_output_that_it_is_about() -> None:
    spec = {
        "target": {"outputDataset": "wide"},
        "store": {"parquet": {"location": "/indexes"}},
        "indexes": [{"type": "MIN_MAX", "column": "a"}],
    }
    raws = [*model(), document("SkippingIndex", "of-wide", spec)]
    bundle = bundle_for("SkippingIndex", "of-wide", parsed(raws))
    assert bundle.target_output.name == "wide"
    assert bundle.runnable is bundle.index
    assert bundle.data_sources == ()
    assert Bundle.parse(bundle.dump()) == bundle


def test_resources_of_other_namespaces_are_left_out() -> None:
    elsewhere = [r | {"metadata": {**r["metadata"], "namespace": "b"}} for r in model()[:-1]]
    bundle = bundle_for("OutputDataset", "wide", parsed([*elsewhere, output()]))
    assert bundle.data_sources == ()


def test_an_unknown_output_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(InvalidDeclarations) as raised:
        bundle_for("OutputDataset", "wyde", parsed(model()))
    (finding,) = raised.value.findings
    assert (finding.code, finding.hint) == ("SL191", "did you mean `wide`?")
