"""What is refused, and what is let through with a warning."""

import pytest
from support.declared.declarations import (
    Raw,
    complex_,
    document,
    files,
    found,
    key,
    model,
    output,
    relationship,
    simple,
    spoilt,
)
from support.operator.reviews import DENY, a_request, answered, codes, response, store_of, stored
from support.operator.reviews import key as ref_key

from snaploom.policy.verdicts import judge
from snaploom_operator.admission.request import Answer
from snaploom_operator.decision import Unparsable
from snaploom_operator.gather import gatherer as checking
from snaploom_operator.store.entries import size_of

OTHERS = "spec.dataModel.otherDataSources"
JDBC = {
    "driver": "POSTGRESQL", "host": "db", "database": "shop", "tableReference": "t",
    "credentials": {"fromSecret": {"name": "db"}}, "snapshot": {"fromReadTime": {}},
}  # fmt: skip
PASSWORD = {"user": "u", "password": "geheim"}


def by_url(url: str) -> Raw:
    parts = {name: value for name, value in JDBC.items() if name not in ("host", "database")}
    return document("DataSource", "a", {"jdbc": parts | {"url": url}})


WRONG_BY_ITSELF = [
    pytest.param(output(**{"dataModel.maxDepht": 3}), ["SL110"], id="misspelt"),
    pytest.param(output(**{"dataModel.maxDepth": 0}), ["SL113"], id="out of range"),
    pytest.param(output(**{"outputFolder.folderUri": "relative/"}), ["SL173"], id="folder"),
    pytest.param(
        output(**{"dataModel.otherDataSources.0.fieldName": "data"}), ["SL170"], id="reserved name"
    ),
    pytest.param(
        output(**{"dataModel.otherDataSources.0.dataSource": "customer"}), ["SL171"], id="twice"
    ),
    pytest.param(output(**{"run.schedule": {"cron": "61 * * * *"}}), ["SL133"], id="cron"),
    pytest.param(files("a", sourceUriPrefix="/data/{a:string"), ["SL140"], id="prefix"),
    pytest.param(simple("a", "SELECT * FROM x"), ["SL152"], id="reads something else"),
    pytest.param(simple("a", "nonsense("), ["SL150"], id="no SQL"),
    pytest.param(
        relationship("r", (["a", "b"], [key("x")]), (["a"], [key("y")])), ["SL160"], id="two keys"
    ),
    pytest.param(
        relationship("r", (["a", "b"], [key("x") | {"normalize": ["TRIMM"]}])),
        ["SL113"],
        id="no step",
    ),
    pytest.param(
        relationship(
            "r",
            (
                ["a", "b"],
                [{"fields": [{"fieldName": "x", "dataType": {"long": {}}}], "normalize": ["TRIM"]}],
            ),
        ),
        ["SL166"],
        id="no text",
    ),
    pytest.param(
        document(
            "DataSource",
            "a",
            {"simpleVirtual": {"dataSource": "a", "alias": "c", "dataQuery": "SELECT * FROM c"}},
        ),
        ["SL155"],
        id="reads itself",
    ),
]
REFUSED_IN_CLUSTERS = [
    pytest.param(
        document(
            "DataSource", "a",
            {"jdbc": JDBC | {"credentials": {"fromPlaintext": PASSWORD}}},
        ),
        "SL143", "spec.jdbc.credentials.fromPlaintext", id="password of a database",
    ),
    pytest.param(
        by_url("jdbc:postgresql:x?socketFactory=y"),
        "SL144", "spec.jdbc.url", id="URL of a database",
    ),
    pytest.param(
        document(
            "SkippingIndex", "i",
            {
                "target": {"dataSource": "a"},
                "indexes": [{"type": "MIN_MAX", "column": "x"}],
                "store": {"openSearch": {
                    "host": "search", "auth": "BASIC",
                    "credentials": {"fromPlaintext": PASSWORD},
                }},
            },
        ),
        "SL183", "spec.store.openSearch.credentials.fromPlaintext", id="password of OpenSearch",
    ),
]  # fmt: skip


@pytest.mark.parametrize("raw", model(), ids=lambda raw: str(raw["kind"]))
def test_a_valid_object_among_all_it_needs_is_allowed_without_warnings(raw: Raw) -> None:
    answer = answered(raw, [other for other in model() if other != raw])
    assert answer.is_allowed
    assert answer.warnings == ()


@pytest.mark.parametrize(("raw", "expected"), WRONG_BY_ITSELF)
def test_what_is_wrong_by_itself_is_refused(raw: Raw, expected: list[str]) -> None:
    assert codes(answered(raw)) == expected
    assert codes(answered(raw, model())) == expected


def generated(raw: Raw) -> Raw:
    return spoilt(raw, "metadata", {"generateName": f"{raw['metadata']['name']}-"})


@pytest.mark.parametrize("raw", model(), ids=lambda raw: str(raw["kind"]))
def test_an_object_without_a_name_yet_is_judged_as_one_with_a_name(raw: Raw) -> None:
    answer = answered(generated(raw), [other for other in model() if other != raw])
    assert answer.is_allowed
    assert answer.warnings == ()
    broken = spoilt(generated(raw), "spec", {})
    assert codes(answered(broken)) == codes(answered(spoilt(raw, "spec", {})))


def test_an_output_without_a_name_yet_may_not_share_a_folder() -> None:
    answer = answered(generated(model()[-1]), model())
    assert codes(answer) == ["SL174"]


@pytest.mark.parametrize("beginning", [5, None, "", "Not a name/", "x" * 300])
def test_what_no_name_can_begin_with_is_refused_or_cut_as_the_api_server_does(beginning):
    answer = answered(spoilt(files("a"), "metadata", {"generateName": beginning}))
    paths = [] if answer.refusal is None else [each.path for each in answer.refusal.findings]
    assert all(path.startswith("metadata.") for path in paths)
    assert answer.is_allowed == (beginning == "x" * 300)


@pytest.mark.parametrize(("raw", "expected"), WRONG_BY_ITSELF)
def test_the_command_line_finds_the_same(raw: Raw, expected: list[str]) -> None:
    if expected[0] > "SL129":  # what is below is found before there is a resource
        everything = [*(m for m in model() if m["metadata"] != raw["metadata"]), raw]
        assert expected[0] in {code for code, *_ in found(everything)}


@pytest.mark.parametrize(("raw", "expected"), WRONG_BY_ITSELF)
def test_reconciliation_finds_the_same_without_a_webhook(raw: Raw, expected: list[str]) -> None:
    others = [other for other in model() if other["metadata"] != raw["metadata"]]
    assert expected[0] in reconciled(raw, others)


@pytest.mark.parametrize(("raw", "code", "path"), REFUSED_IN_CLUSTERS)
def test_reconciling_refuses_what_no_cluster_accepts(raw: Raw, code: str, path: str) -> None:
    assert code in reconciled(raw, [files("a")] if raw["kind"] == "SkippingIndex" else [])


def reconciled(raw: Raw, others: list[Raw], *, allow_jdbc_url: bool = False) -> set[str]:
    """Codes of the errors that the operator finds."""
    store = store_of([*others, raw])
    entry = store.entry(ref_key(raw))
    if isinstance(entry.content, Unparsable):
        return {finding.code for finding in entry.content.findings}
    around = checking.ResourceContext(entry.content, store.closure(entry.ref))
    findings = checking.own_findings(around, judge_text=judge, allow_jdbc_url=allow_jdbc_url)
    return {finding.code for finding in findings if finding.is_error}


@pytest.mark.parametrize(("raw", "code", "path"), REFUSED_IN_CLUSTERS)
def test_what_a_cluster_does_not_accept_is_refused_without_showing_it(raw, code, path):
    answer = answered(raw)
    assert [(f.code, f.path) for f in answer.refusal.findings] == [(code, path)]
    assert "geheim" not in str(response(a_request(raw), answer))
    assert "RUNSCRIPT" not in str(response(a_request(raw), answer))


def test_a_url_passes_with_a_warning_where_the_settings_allow_it() -> None:
    raw = by_url("jdbc:postgresql:x?socketFactory=y")
    answer = answered(raw, allow_jdbc_url=True)
    assert answer.is_allowed
    assert ["JDBC URL" in warning for warning in answer.warnings] == [True]
    assert reconciled(raw, [], allow_jdbc_url=True) == set()


def test_a_password_in_a_url_is_refused_and_not_shown_whatever_the_settings_are() -> None:
    raw = by_url("jdbc:postgresql://u:geheim@db/x")
    answer = answered(raw, allow_jdbc_url=True)
    assert codes(answer) == ["SL145"]
    assert "geheim" not in str(response(a_request(raw), answer))
    assert reconciled(raw, [], allow_jdbc_url=True) == {"SL145"}


@pytest.mark.parametrize("raw", model(), ids=lambda raw: str(raw["kind"]))
def test_what_is_missing_is_a_warning(raw: Raw) -> None:
    answer = answered(raw)
    assert answer.is_allowed
    expected = {"DataSource": 0, "DataRelationship": 2, "OutputDataset": 3}
    assert len(answer.warnings) == expected[raw["kind"]]
    assert all("there is no Data" in warning for warning in answer.warnings)


def test_a_circle_is_refused_whichever_source_closes_it() -> None:
    snapshots = "SELECT a AS interval_start, b AS interval_end FROM c0"
    query = "SELECT * FROM c0 WHERE t < {{ SNAPSHOT | UNIX_SECONDS }}"
    ring = [
        complex_("a", query, "b", snapshotQuery=snapshots),
        complex_("b", query, "c", snapshotQuery=snapshots),
        complex_("c", query, "a", snapshotQuery=snapshots),
    ]
    for raw in ring:
        answer = answered(raw, [other for other in ring if other != raw])
        assert codes(answer) == ["SL155"]
        assert answer.refusal.findings[0].resource == f"DataSource/{raw['metadata']['name']}"
        assert answered(raw, [ring[0]] if raw != ring[0] else []).is_allowed


def reads(name: str, *folders: str) -> Raw:
    return files(name, sourceUriGlobs=[f"{folder}data/*/*.parquet" for folder in folders])


def chained(name: str, root: str) -> Raw:
    parts = {"otherDataSources": [], "dataRelationships": []}
    raw = output(name, **{f"dataModel.{part}": value for part, value in parts.items()})
    return spoilt(raw, "spec.dataModel.rootDataSource.dataSource", root)


def test_a_circle_of_outputs_is_refused_whichever_closes_it() -> None:
    sources = [reads("of-a", "/out/a/"), reads("of-b", "/out/b/")]
    circle = [chained("a", "of-b"), chained("b", "of-a")]
    for raw in circle:
        others = [other for other in circle if other != raw]
        assert codes(answered(raw, [*sources, *others])) == ["SL181"]
        assert answered(raw, sources).is_allowed


def test_an_output_may_read_what_another_publishes() -> None:
    others = [reads("of-b", "/out/b/"), reads("raw", "/raw/"), chained("b", "raw")]
    assert answered(chained("a", "of-b"), others) == Answer()


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [("/out/a/", "/out/a/"), ("/out/a/b/", "/out/a/"), ("/out/a/", "/out/a/b/")],
)
def test_a_folder_that_overlaps_is_refused_for_the_later_output(mine: str, theirs: str) -> None:
    later = output("z", **{"outputFolder.folderUri": mine})
    answer = answered(later, [output("a", **{"outputFolder.folderUri": theirs})])
    (finding,) = answer.refusal.findings
    assert (finding.code, finding.resource) == ("SL174", "OutputDataset/z")
    assert "OutputDataset/a" in finding.message


def test_a_table_of_a_catalog_is_refused_for_the_later_output() -> None:
    place = {"dataFormat": "ICEBERG", "table": {"catalog": "lake", "name": "sales.orders"}}
    outputs = [output(name, **{"outputFolder.folderUri": f"/{name}/"}) for name in "za"]
    for each in outputs:
        each["spec"]["outputFolder"] |= place
    answer = answered(outputs[0], outputs[1:])
    (finding,) = answer.refusal.findings
    assert (finding.resource, finding.path) == ("OutputDataset/z", "spec.outputFolder.table")
    assert finding.message == "OutputDataset/a publishes to the same table"


def test_a_folder_of_another_namespace_does_not_count() -> None:
    other = stored(output("a", **{"outputFolder.folderUri": "/out/"}), namespace="elsewhere")
    assert answered(output("z"), [other]).is_allowed


@pytest.mark.parametrize("relationships", [["customer-id"], []])
def test_what_does_not_fit_what_it_refers_to_is_a_warning(relationships: list[str]) -> None:
    """The next object of the same `kubectl apply` may correct the relationship."""
    others = [files("customer"), files("address"), files("x")]
    unrelated = relationship("customer-id", (["customer", "x"], [key("customer_id")]))
    used = [{"name": name} for name in relationships]
    answer = answered(output(**{"dataModel.dataRelationships": used}), [*others, unrelated])
    assert answer.is_allowed
    assert any("otherDataSources[0]" in warning for warning in answer.warnings)


MANIFEST = {
    "uri": "/out/wide/",
    "sequence": 3,
    "fixed": {
        "dataFormat": "PARQUET", "dataCompression": "SNAPPY",
        "partitionFieldName": "snapshot_epoch", "timestampFormat": "UNIX_MILLISECONDS",
        "outputTimezone": "UTC", "output": "wide", "root": "customer",
    },
}  # fmt: skip
HIVE = "spec.outputFolder.snapshotFormat.hivePartitioned"
CHANGES = [
    ("spec.outputFolder.dataFormat", "JSONL"),
    ("spec.outputFolder.dataCompression", "GZIP"),
    (f"{HIVE}.fieldName", "day"),
    (f"{HIVE}.timestampFormat", "UNIX_SECONDS"),
    (f"{HIVE}.outputTimezone", "Europe/Berlin"),
    ("spec.dataModel.rootDataSource.dataSource", "other"),
]


def test_compression_that_is_not_declared_follows_the_folder() -> None:
    published = stored(output(), manifest=MANIFEST)
    changed = spoilt(published, "spec.outputFolder.snapshotCatchupMode", "NEWEST_FIRST")
    assert "dataCompression" not in changed["spec"]["outputFolder"]
    assert answered(changed, model(), published).refusal is None


@pytest.mark.parametrize(("path", "value"), CHANGES)
def test_what_the_first_publication_fixed_is_refused(path: str, value: str) -> None:
    published = stored(output(), manifest=MANIFEST)
    answer = answered(spoilt(published, path, value), model(), published)
    assert [(f.code, f.path, f.found) for f in answer.refusal.findings] == [("SL192", path, value)]


@pytest.mark.parametrize(("path", "value"), CHANGES)
def test_before_the_first_publication_nothing_is_fixed(path: str, value: str) -> None:
    fresh = stored(output())
    assert answered(spoilt(fresh, path, value), model(), fresh).is_allowed


@pytest.mark.parametrize(("path", "value"), CHANGES)
def test_a_mistake_in_what_is_fixed_can_be_taken_back(path: str, value: str) -> None:
    mistaken = stored(spoilt(output(), path, value), manifest=MANIFEST)
    assert answered(stored(output(), manifest=MANIFEST), model(), mistaken).is_allowed


def test_a_new_folder_has_fixed_nothing() -> None:
    published = stored(output(), manifest=MANIFEST)
    moved = spoilt(published, "spec.outputFolder.folderUri", "/out/anew/")
    assert answered(
        spoilt(moved, "spec.outputFolder.dataFormat", "AVRO"), model(), published
    ).is_allowed


@pytest.mark.parametrize(
    ("fixed", "codes"), [("of no catalog", []), ("lake.shop.other", ["SL192"])]
)
def test_table_may_move_from_the_folder_to_a_catalog_and_not_between_catalogs(
    fixed: str, codes: list[str]
) -> None:
    settings = {**MANIFEST["fixed"], "dataFormat": "ICEBERG", "table": fixed}  # type: ignore[dict-item]
    iceberg = spoilt(output(), "spec.outputFolder.dataFormat", "ICEBERG")
    published = stored(iceberg, manifest={**MANIFEST, "fixed": settings})
    named = {"catalog": "lake", "name": "shop.wide"}
    answer = answered(spoilt(published, "spec.outputFolder.table", named), model(), published)
    assert [f.code for f in (answer.refusal.findings if answer.refusal else ())] == codes


def test_another_root_is_let_through_where_the_output_accepts_it() -> None:
    published = stored(output(), manifest=MANIFEST)
    changed = spoilt(published, "spec.dataModel.rootDataSource.dataSource", "other")
    changed = spoilt(changed, "spec.run", {"acceptRootChange": True})
    assert answered(changed, model(), published).is_allowed


def shop() -> list[Raw]:
    return [stored(raw) for raw in model()]


def narrowed() -> tuple[Raw, Raw]:
    before = shop()[2]
    return before, spoilt(before, "spec.representations.0.dataSources", ["customer", "elsewhere"])


def test_a_change_that_breaks_others_is_a_warning_that_names_them() -> None:
    before, after = narrowed()
    answer = answered(after, [*shop(), stored(files("elsewhere"))], before)
    assert answer.is_allowed
    assert "this change breaks OutputDataset/wide; it stalls" in answer.warnings[0]
    assert "OutputDataset/wide spec.dataModel.otherDataSources[0]" in answer.warnings[1]


def test_a_change_that_breaks_others_is_refused_where_they_are_protected() -> None:
    before, after = narrowed()
    answer = answered(after, [*shop(), stored(files("elsewhere"))], before, DENY)
    assert codes(answer) == ["SL302"]
    text = response(a_request(after, before), answer)["status"]["message"]
    assert text.startswith("this change breaks OutputDataset/wide")
    assert "fix:" in text


def test_what_was_broken_before_is_no_reason_to_refuse() -> None:
    _, after = narrowed()
    relabelled = spoilt(after, "metadata.labels", {"a": "b"})
    existing = [raw for raw in shop() if raw["kind"] != "DataRelationship"]
    existing += [after, stored(files("elsewhere"))]
    assert answered(relabelled, existing, after, DENY).warnings == ()


def test_users_of_a_resource_that_stalls_break_as_well() -> None:
    before, after = narrowed()  # it names a source that is not there
    answer = answered(after, shop(), before)
    assert "there is no DataSource" in answer.warnings[0]
    assert "this change breaks OutputDataset/wide; it stalls" in answer.warnings[1]
    assert "DataRelationship/customer-id could not be used any more" in answer.warnings[2]
    refused = answered(after, shop(), before, DENY)
    assert [finding.resource for finding in refused.refusal.findings] == ["OutputDataset/wide"]


def test_a_resource_that_waits_already_does_not_break_again() -> None:
    before, after = narrowed()
    without_source = [raw for raw in shop() if raw["metadata"]["name"] != "address"]
    assert answered(after, without_source, before, DENY).is_allowed


def test_a_source_that_becomes_virtual_breaks_sources_that_may_not_read_it() -> None:
    reader = stored(simple("reader", "SELECT * FROM c", source="customer"))
    before = shop()[0]
    after = stored(simple("customer", "SELECT * FROM c", source="address"))
    answer = answered(after, [*shop(), reader], before, DENY)
    assert codes(answer) == ["SL154"]


def test_grouping_a_published_source_otherwise_is_a_warning() -> None:
    published = stored(output(), manifest=MANIFEST)
    group = {"groupBy": {"fieldNames": ["customer_id"]}}
    changed = spoilt(published, f"{OTHERS}.0.transformations", group)
    answer = answered(changed, model()[:-1], published)
    assert answer.is_allowed
    assert len(answer.warnings) == 1
    assert "HistoryIncompatible" in answer.warnings[0]
    assert answered(changed, model()[:-1], stored(output())).warnings == ()


def test_a_relationship_that_moves_a_published_field_breaks_its_output() -> None:
    chain = [
        files("customer"), files("address"), files("city"),
        relationship("customer-id", (["customer", "address"], [key("customer_id")])),
        relationship("city-id", (["address", "city"], [key("city_id")])),
    ]  # fmt: skip
    wide = output(
        **{
            "dataModel.otherDataSources": [
                {"dataSource": "address", "fieldName": "address"},
                {"dataSource": "city", "fieldName": "city"},
            ],
            "dataModel.dataRelationships": [{"name": "customer-id"}, {"name": "city-id"}],
        }
    )
    existing = [*map(stored, chain), stored(wide, manifest=MANIFEST)]
    before = existing[4]
    after = spoilt(before, "spec.representations.0.dataSources", ["customer", "city"])
    assert "HistoryIncompatible" in answered(after, existing, before).warnings[1]
    assert codes(answered(after, existing, before, DENY)) == ["SL192"]
    unpublished = [*existing[:-1], stored(wide)]
    assert answered(after, unpublished, before, DENY).is_allowed


def test_a_deletion_passes_with_a_warning_where_others_need_it() -> None:
    answer = answered(None, shop(), shop()[0], DENY)
    assert answer.is_allowed
    assert answer.warnings == (
        "DataSource/customer is used by DataRelationship/customer-id, OutputDataset/wide; "
        "they stall until it is there again",
    )


def test_a_deletion_of_an_unused_object_is_allowed_without_warnings() -> None:
    assert answered(None, shop(), shop()[-1]).warnings == ()


def test_a_user_that_is_being_deleted_too_causes_no_warning() -> None:
    going = [spoilt(raw, "metadata.deletionTimestamp", "2026-01-01T00:00:00Z") for raw in shop()]
    assert answered(None, going, going[0]).warnings == ()


def test_what_a_newer_operator_wrote_into_a_status_is_no_reason_to_refuse() -> None:
    before = stored(output(), fromTheFuture={"a": 1})
    after = spoilt(before, "spec.dataModel.maxDepth", 3)
    assert answered(after, model(), before).is_allowed


def test_a_relationship_of_many_outputs_is_judged_in_some_and_warns(monkeypatch):
    monkeypatch.setattr("snaploom_operator.admission.conflicts.DEPENDANTS_JUDGED", 2)
    outputs = [stored(output(f"o{number}")) for number in range(5)]
    before, after = narrowed()
    existing = [*shop()[:3], stored(files("elsewhere")), *outputs]
    answer = answered(after, existing, before)
    assert "breaks OutputDataset/o0, OutputDataset/o1;" in answer.warnings[0]
    assert "checked for 2 of 5" in answer.warnings[-1]


def test_of_large_dependants_no_more_are_judged_than_take_a_moment(monkeypatch):
    outputs = [stored(output(f"o{number}")) for number in range(5)]
    size = size_of(outputs[0]["spec"])
    monkeypatch.setattr("snaploom_operator.admission.conflicts.LARGEST_DEPENDANTS", 3 * size)
    before, after = narrowed()
    existing = [*shop()[:3], stored(files("elsewhere")), *outputs]
    assert "checked for 3 of 5" in answered(after, existing, before).warnings[-1]
