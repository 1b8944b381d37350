"""Outputs are read by those whose sources name files in their folders, however these are spelt."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.declared.declarations import (
    Raw,
    complex_,
    document,
    files,
    found,
    key,
    model,
    output,
    parsed,
    put,
    relationship,
    simple,
)
from support.declared.joinmodels import customer_model, output_of

from snaploom.models.common import Resource
from snaploom.models.datasource import DataSource
from snaploom.models.findings import InvalidDeclarations
from snaploom.models.outputdataset import OutputDataset
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import bundle_for, read_places
from snaploom.policy.references import ReadGraph
from snaploom.validate.outputs import upstream_outputs
from snaploom.validate.validator import validate

TABLE_SOURCE: Raw = {
    "format": "iceberg",
    "table": {"catalog": "lake", "name": "shop.wide"},
    "snapshot": {"fromReadTime": {}},
}


def reading(name: str, *globs: str, folder: str = "") -> list[Raw]:
    """An output of one source that reads globs."""
    source = files(f"{name}-files", sourceUriGlobs=list(globs))
    changes = {"dataModel.otherDataSources": [], "dataModel.dataRelationships": []}
    root = {"dataModel.rootDataSource.dataSource": f"{name}-files"}
    return [
        source,
        output(name, **changes, **root, **{"outputFolder.folderUri": folder or f"/out/{name}/"}),
    ]


def upstream(raws: list[Raw], name: str) -> list[str]:
    resources: list[Resource] = parsed(raws)
    outputs = [each for each in resources if isinstance(each, OutputDataset)]
    bundle = bundle_for("OutputDataset", name, resources)
    return [each.name for each in upstream_outputs(bundle, outputs)]


@pytest.mark.parametrize(
    ("glob", "folder", "is_read"),
    [
        pytest.param("/out/up/data/*/*.parquet", "/out/up/", True, id="below"),
        pytest.param("/out/up/*", "/out/up/", True, id="in it"),
        pytest.param("file:///out/up/data/*/*", "/out/up/", True, id="another spelling of local"),
        pytest.param("/out/up/", "file:/out/up/", True, id="the folder itself"),
        pytest.param("/out/up/iceberg", "/out/up/", True, id="its table"),
        pytest.param("s3a://b/up/data/*/*", "s3://b/up/", True, id="another spelling of S3"),
        pytest.param("/out/u*/data/*/*", "/out/up/", True, id="a wildcard in the folder"),
        pytest.param("/*/up/data/*/*", "/out/up/", True, id="a wildcard above the folder"),
        pytest.param("/out/{up,side}/data/*/*", "/out/up/", True, id="one of several"),
        pytest.param("/out/[t-v]p/data/*/*", "/out/up/", True, id="a range of characters"),
        pytest.param("/out/[^a]p/data/*/*", "/out/up/", True, id="all but a character"),
        pytest.param("/out/*.parquet", "/out/up/", False, id="files beside the folder"),
        pytest.param("/out/up2/data/*/*", "/out/up/", False, id="a folder that begins the same"),
        pytest.param("/out/{side,down}/data/*/*", "/out/up/", False, id="none of several"),
        pytest.param("s3://c/up/data/*/*", "s3://b/up/", False, id="another bucket"),
        pytest.param("/out/\\*/data/*/*", "/out/up/", False, id="an escaped star"),
    ],
)
def test_output_is_read_when_files_can_be_in_its_folder(glob, folder, is_read):
    raws = [*reading("up", "/raw/*/*", folder=folder), *reading("down", "/raw/*", glob)]
    assert upstream(raws, "down") == (["up"] if is_read else [])
    assert upstream(raws, "up") == []


@pytest.mark.parametrize(
    ("table", "is_read"),
    [("lake shop.wide", True), ("lake shop.wide2", False), ("pond shop.wide", False)],
)
def test_output_that_is_a_table_is_read_by_sources_that_name_it(table: str, is_read: bool) -> None:
    wanted = dict(zip(("catalog", "name"), table.split(), strict=True))
    down = reading("down", "/raw/*")
    down[0]["spec"]["hdfsLike"] = TABLE_SOURCE | {"table": wanted}
    up = reading("up", "/raw/*")
    up[1]["spec"]["outputFolder"] |= {"dataFormat": "ICEBERG", "table": TABLE_SOURCE["table"]}
    assert upstream([*up, *down], "down") == (["up"] if is_read else [])


def test_outputs_behind_virtual_sources_are_read() -> None:
    changes = {"dataModel.otherDataSources": [], "dataModel.dataRelationships": []}
    root = {"dataModel.rootDataSource.dataSource": "part"}
    raws = [
        *reading("up", "/raw/*"),
        files("whole", sourceUriGlobs=["/out/up/data/*/*"]),
        simple("part", "SELECT a FROM c", "whole"),
        output("down", **changes, **root),
    ]
    assert upstream(raws, "down") == ["up"]


def test_sources_that_are_joined_count_as_the_root_does() -> None:
    raws = [
        *reading("up", "/raw/*"),
        files("customer"),
        files("address", sourceUriGlobs=["/out/up/data/*/*"]),
        relationship("customer-id", (["customer", "address"], [key("customer_id")])),
        output("down"),
    ]
    assert upstream(raws, "down") == ["up"]


def test_every_output_of_a_cycle_gets_the_cycle() -> None:
    raws = [
        *reading("a", "/out/c/data/*/*"),
        *reading("b", "/out/a/data/*/*"),
        *reading("c", "/out/b/data/*/*", "/raw/*"),
        *reading("d", "/out/c/data/*/*"),
    ]
    circles = {f.resource: f.found for f in validate(parsed(raws)) if f.code == "SL181"}
    assert circles == {
        "OutputDataset/a": "OutputDataset/a -> OutputDataset/c -> OutputDataset/b "
        "-> OutputDataset/a",
        "OutputDataset/b": "OutputDataset/b -> OutputDataset/a -> OutputDataset/c "
        "-> OutputDataset/b",
        "OutputDataset/c": "OutputDataset/c -> OutputDataset/b -> OutputDataset/a "
        "-> OutputDataset/c",
    }


def test_output_that_reads_itself_is_refused() -> None:
    raws = reading("own", "/out/own/data/*/*")
    assert ("SL181", "OutputDataset/own", "spec.dataModel") in found(raws)


def test_cycle_is_reported_for_requested_outputs_only() -> None:
    raws = [*reading("a", "/out/b/data/*/*"), *reading("b", "/out/a/data/*/*")]
    about = validate(parsed(raws), about={"OutputDataset/b"})
    assert [f.resource for f in about if f.code == "SL181"] == ["OutputDataset/b"]


def test_choices_beyond_the_limit_count_as_read() -> None:
    many = "{" + ",".join(f"n{number}" for number in range(40)) + "}"
    raws = [*reading("up", "/raw/*"), *reading("down", f"/out/{many}/{many}/{many}/*")]
    assert upstream(raws, "down") == ["up"]


NAMES = st.sampled_from("abcdefg")
GRAPHS = st.dictionaries(NAMES, st.lists(NAMES, unique=True, max_size=4))


def reached(reads: dict[str, list[str]], start: str) -> dict[str, int]:
    """What is reached from a name, by the least number of steps."""
    found: dict[str, int] = {}
    step, now = 1, set(reads.get(start, ()))
    while now:
        found.update(dict.fromkeys(now, step))
        now = {other for name in now for other in reads.get(name, ())} - found.keys()
        step += 1
    return found


@given(GRAPHS)
def test_names_share_a_group_when_each_reaches_the_other(reads: dict[str, list[str]]) -> None:
    reach = {name: reached(reads, name) for name in "abcdefg"}
    expected = {
        frozenset(other for other in reach[name] if name in reach[other])
        for name in reach
        if name in reach[name]
    }
    assert sorted(map(sorted, ReadGraph(reads).circles)) == sorted(map(sorted, expected))


@given(GRAPHS)
def test_circle_leads_back_in_as_few_steps_as_possible(reads: dict[str, list[str]]) -> None:
    graph = ReadGraph(reads)
    for name in reads:
        circle, steps = graph.circle(name), reached(reads, name).get(name)
        assert bool(circle) == (steps is not None)
        if circle:
            assert circle[0] == circle[-1] == name
            assert all(after in reads[one] for one, after in pairwise(circle))
            assert len(circle) - 1 == steps


@given(GRAPHS, st.lists(NAMES))
def test_unknown_names_are_not_reached(reads: dict[str, list[str]], names: list[str]) -> None:
    expected = {name for name in names if name in reads}
    expected |= {other for name in names for other in reached(reads, name) if other in reads}
    assert ReadGraph(reads).reached(names) == expected


def test_the_first_by_name_of_equally_short_circles_is_named() -> None:
    reads = {"a": ["z", "c", "b"], "b": ["a"], "c": ["a"], "z": ["a"]}
    assert ReadGraph(reads).circle("a") == ("a", "b", "a")


def test_what_is_read_first_comes_first_and_once() -> None:
    reads = {"top": ["b", "a"], "b": ["deep"], "a": ["deep"], "deep": [], "other": []}
    assert ReadGraph(reads).in_order("top") == ("top", "b", "deep", "a")


def test_places_behind_more_queries_than_the_stack_holds_are_found() -> None:
    declared = [files("q0"), *(simple(f"q{n}", "SELECT 1", f"q{n - 1}") for n in range(1, 1500))]
    sources = tuple(each for each in parsed(declared) if isinstance(each, DataSource))
    bundle = Bundle(output_dataset=output_of(customer_model()), data_sources=sources)
    assert [place.name for place in read_places(bundle, "q1499")] == ["/data/q0"]
    assert [place.name for place in read_places(bundle, "q0")] == ["/data/q0"]


def test_a_chain_longer_than_the_stack_has_no_circle_until_it_is_closed() -> None:
    chain = {str(number): [str(number + 1)] for number in range(20_000)}
    assert ReadGraph(chain).circles == ()
    closed = ReadGraph({**chain, "20000": ["0"]})
    assert [len(group) for group in closed.circles] == [20_001]
    assert len(closed.circle("7")) == 20_002
    assert len(closed.in_order("7")) == 20_001


def test_circles_of_which_there_are_more_than_could_be_counted_are_not_enumerated() -> None:
    names = [f"n{number:03}" for number in range(300)]
    graph = ReadGraph(dict.fromkeys(names, names[1:]) | {names[0]: names})
    assert graph.circles == (frozenset(names[1:]), frozenset(names[:1]))
    assert graph.circle("n005") == ("n005", "n005")


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
