"""What the API server does with objects: drawn ones, hostile ones, large ones."""

import itertools
import json
import re
from collections.abc import Iterator

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import resources
from support.cluster.cluster import CRDS, running_control_plane
from support.cluster.clusterkubectl import Raw
from support.declared.declarations import document
from support.declared.modelrules import (
    BEHIND_TEXTS,
    CRON,
    FOLDER,
    INDEX,
    LONG,
    PLACES,
    RULES,
    changed,
)
from support.documentation.examples import REPOSITORY

from snaploom.models import common, outputdataset
from snaploom.models import outputdataset as outputfolder
from snaploom.models.kinds import KINDS
from snaploom.models.schemas import crd, crd_name

LARGE = "x" * 1_000_000
A_FILE = {"format": "parquet", "sourceUriGlobs": ["/a"], "snapshot": {"fromReadTime": {}}}


def files(**parts):
    return "DataSource", {"hdfsLike": A_FILE | parts}


def output(**parts):
    root = {"dataSource": "a", "snapshotFilter": {"fromCron": CRON}}
    return "OutputDataset", {"dataModel": {"rootDataSource": root} | parts, "outputFolder": FOLDER}


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.data(), st.sampled_from(KINDS))
def test_what_the_parser_accepts_is_stored(judge, data, kind):
    raw = data.draw(resources(kind.model, with_status=False))
    dumped = kind.model.parse(raw).dump()
    assert judge.complaint(kind.name, raw["spec"]) == ""
    assert judge.complaint(kind.name, dumped["spec"]) == ""


HOSTILE = {
    "newline in a reference": output(rootDataSource={"dataSource": "a\nb"}),
    "newline at the end of a reference": output(otherDataSources=[{"dataSource": "a\n"}]),
    "path in a reference": output(rootDataSource={"dataSource": "../a"}),
    "other namespace in a reference": output(rootDataSource={"dataSource": "other/a"}),
    "newline in a field": output(otherDataSources=[{"dataSource": "a", "fieldName": "a\nb"}]),
    "large reference": output(rootDataSource={"dataSource": LARGE}),
    "large URI": files(sourceUriGlobs=[LARGE]),
    "large option": files(formatOptions={"a": LARGE}),
    "many options": files(formatOptions={str(number): "" for number in range(257)}),
    "many globs": files(sourceUriGlobs=["/a"] * 257),
    "large query": (
        "DataSource",
        {"simpleVirtual": {"dataSource": "a", "alias": "a", "dataQuery": LARGE}},
    ),
    "volume of the host": ("SkippingIndex", INDEX | {"run": {"spark": {"podTemplate": {
        "volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}}}),
    "sidecar": ("SkippingIndex", INDEX | {"run": {"spark": {"podTemplate": {
        "containers": [{"name": "c", "image": "i"}]}}}}),
    "security context": ("SkippingIndex", INDEX | {"run": {"spark": {"podTemplate": {
        "securityContext": {"privileged": True}}}}}),
    "number as text": output(maxDepth="3"),
    "list as object": files(sourceUriGlobs={"0": "/a"}),
    "null in a list": files(sourceUriGlobs=[None]),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "spec"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_spec_is_refused_with_a_short_message(judge, kind, spec):
    complaint = judge.complaint(kind, spec)
    assert complaint
    assert len(complaint) < 2_000


@pytest.mark.parametrize(
    "part",
    [
        {"containers": [{"name": "c", "image": "i"}]},
        {"securityContext": {"privileged": True}},
        {"hostNetwork": True},
        {"serviceAccountName": "admin"},
    ],
    ids=lambda part: next(iter(part)),
)
def test_what_is_not_ours_to_give_never_reaches_storage(judge, part):
    kept = judge.kept("SkippingIndex", INDEX | {"run": {"spark": {"podTemplate": part}}})
    assert kept == INDEX | {"run": {"spark": {"podTemplate": {}}}}


@pytest.mark.parametrize(
    "name", ["a\nb", "a b", "A", "a_b", "../a", "-a", "", "a" * 254, "a;b", "{{a}}"]
)
def test_hostile_name_is_refused(judge, name):
    assert judge.complaint(*files(), name=name)


def test_deeply_nested_type_is_left_to_the_parser(judge):
    nested = LONG
    for _ in range(200):
        nested = {"array": {"elementType": nested}}
    field = {"name": "a", "dataType": nested}
    assert judge.complaint(*files(schemaFields=[field])) == ""


def repeated(count, build):
    return [build(number) for number in range(count)]


FULL = {
    "sources of an output": output(
        otherDataSources=repeated(2000, lambda n: {"dataSource": f"s{n}", "fieldName": f"f{n}"}),
        dataRelationships=repeated(2000, lambda n: {"name": f"r{n}", "antiPriority": 1}),
    ),
    "fields of a source": files(
        schemaFields=repeated(
            2000, lambda n: {"name": f"f{n}", "dataType": {"decimal": {"precision": 9, "scale": 2}}}
        )
    ),
    "representations of a key": (
        "DataRelationship",
        {
            "representations": repeated(
                2000,
                lambda n: {
                    "dataSources": [f"s{n}"],
                    "joinKey": repeated(
                        4, lambda m: {"fields": [{"fieldName": f"f{m}", "dataType": LONG}]}
                    ),
                },
            )
        },
    ),
    "transformers": (
        "FieldTransformer",
        {
            "transformers": repeated(
                64,
                lambda n: {
                    "rename": {"to": f"f{n}"},
                    "selectors": repeated(64, lambda m: {"coordinateIncludeRegex": f"f{m}"}),
                },
            )
        },
    ),
    "indexes": (
        "SkippingIndex",
        INDEX | {"indexes": repeated(256, lambda n: {"type": "MIN_MAX", "column": f"f{n}"})},
    ),
}


@pytest.mark.parametrize(("kind", "spec"), FULL.values(), ids=FULL)
def test_rules_over_full_lists_cost_less_than_an_object_may(judge, kind, spec):
    assert judge.complaint(kind, spec) == ""


def test_status_is_written_by_its_subresource_only(kubectl, namespace):
    kind, spec = files()
    raw = {"apiVersion": "snaploom.io/v1alpha1", "kind": kind, "metadata": {"name": "a"}}
    kubectl.apply(raw | {"spec": spec, "status": {"observedGeneration": 7}}, namespace=namespace)
    assert "status" not in kubectl.get("datasource", "a", namespace)
    patch = '{"status": {"observedGeneration": 7}}'
    how = ("--namespace", namespace, "--type=merge", "--subresource=status", "--patch", patch)
    kubectl("patch", "datasource", "a", *how)
    found = kubectl.get("datasource", "a", namespace)
    assert found["status"] == {"observedGeneration": 7}
    assert found["metadata"]["generation"] == 1


def test_rules_and_places_are_of_the_same_models():
    assert {model for model, _, _ in RULES} == PLACES.keys()


FLIGHTS = REPOSITORY / "examples" / "flights"
WIDTH = 80
CONDITION = {
    "observedGeneration": 1,
    "lastTransitionTime": "2026-01-31T12:00:00Z",
    "message": "A sentence that describes the state to a person, and names what to do.",
}
RUN = {"id": "ods-flights-wide-0a1b2c3d", "startedAt": "2026-01-31T12:00:00Z"}
LATEST = {
    "time": "2026-01-31T00:00:00Z",
    "publishedAt": "2026-01-31T12:04:00Z",
    "partition": "snapshot_epoch=1769817600000",
    "rows": 336776,
    "files": 4,
    "bytes": 9000000,
}


SELECTORS = [{"coordinateIncludeRegex": "a"}]
OTHERS = (
    document("MetadataApplicator", "units", {"fieldSelectors": SELECTORS, "metadata": {}}),
    document(
        "FieldTransformer", "lower-case", {"transformers": [{"drop": {}, "selectors": SELECTORS}]}
    ),
)


def status_of(kind, ready, reason):
    """A status as the operator writes it, with a Ready condition to choose."""
    condition = CONDITION | {"type": "Ready", "status": ready, "reason": reason}
    status = {"observedGeneration": 1, "conditions": [condition]}
    if kind == "DataSource":
        seen = {"run": RUN["id"], "at": "2026-01-31T12:00:00Z", "latestSnapshot": LATEST["time"]}
        return status | {"usedBy": {"count": 3}, "lastSeen": seen}
    if kind == "OutputDataset":
        last = RUN | {"phase": "Failed", "reason": "SourceNotReadable"}
        current = {"name": RUN["id"], "phase": "Running", "since": RUN["startedAt"]}
        return status | {
            "currentRun": RUN | current | {"progress": "snapshot 3 of 12, join 4 of 9"},
            "lastRun": last,
            "latestSnapshot": LATEST,
            "nextRunTime": "2026-02-01T03:00:00Z",
        }
    if kind == "SkippingIndex":
        return status | {"state": "refreshing", "files": {"indexed": 4, "stale": 1, "missing": 0}}
    return status | {"usedBy": {"count": 12}}


def set_status(kubectl, namespace, found, status):
    """Write a status when it is not there yet."""
    if found.get("status") == status:
        return
    found["status"] = status
    patch = json.dumps({"status": status})
    kind, name = found["kind"].lower(), found["metadata"]["name"]
    how = ("--namespace", namespace, "--type=merge", "--subresource=status", "--patch", patch)
    kubectl("patch", f"{kind}.snaploom.io", name, *how)


@pytest.fixture(scope="module")
def applied(control_plane):
    """A namespace with the example of the flights, and what was applied."""
    namespace = control_plane.create_namespace()
    kubectl = control_plane.kubectl
    kubectl("apply", "--server-side", "--namespace", namespace, "-f", str(FLIGHTS))
    kubectl.apply(*OTHERS, namespace=namespace)
    yield namespace, kubectl.list("snaploom", namespace)
    control_plane.delete_namespace(namespace)


STORIES = {
    "good": {"OutputDataset": ("True", "Published"), "SkippingIndex": ("True", "IndexActive")},
    "failed": {"OutputDataset": ("True", "LastRunFailed")},
    "ambiguous": {
        "OutputDataset": ("False", "TreeAmbiguous"),
        "SkippingIndex": ("False", "ReferenceNotReady"),
    },
    "missing": {
        "DataSource": ("False", "ReferenceMissing"),
        "OutputDataset": ("False", "ReferenceNotReady"),
    },
    "waiting": {
        "OutputDataset": ("Unknown", "RunSubmitted"),
        "SkippingIndex": ("Unknown", "NeverPublished"),
    },
    "suspended": {"OutputDataset": ("True", "Suspended")},
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_every_line_fits_into_a_terminal(kubectl, applied, story):
    namespace, objects = applied
    for found in objects:
        ready, reason = story.get(found["kind"], ("True", "Valid"))
        set_status(kubectl, namespace, found, status_of(found["kind"], ready, reason))
    lines = kubectl("get", "snaploom", "--namespace", namespace).splitlines()
    assert [line for line in lines if len(line.rstrip()) > WIDTH] == []
    assert sum(line.startswith("NAME") for line in lines) == len(KINDS)
    assert sum(" Valid " in line for line in lines) >= len(objects) - 11


def test_publication_is_an_age_and_under_wide_the_snapshot_a_time(kubectl, applied):
    namespace, objects = applied
    for found in objects:
        if found["kind"] == "OutputDataset":
            status = status_of("OutputDataset", "True", "Published")
            set_status(kubectl, namespace, found, status)
    title, line = kubectl("get", "ods", "--namespace", namespace).splitlines()
    assert title.split() == ["NAME", "READY", "REASON", "PUBLISHED"]
    assert re.fullmatch(r"flights-wide +True +Published +\d+d *", line)
    wide = kubectl("get", "ods", "--namespace", namespace, "--output", "wide")
    shown = (LATEST["time"], "336776", "Running", "snapshot 3 of 12, join 4 of 9")
    for each in (*shown, "Failed", "SourceNotReadable"):
        assert each in wide
    assert CONDITION["message"] in wide


every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
NAMES = [f"crd/{crd_name(kind)}" for kind in KINDS]
SPECIFICATION = "/openapi/v3/apis/snaploom.io/v1alpha1"


def versions(kubectl):
    objects = json.loads(kubectl("get", *NAMES, "--output", "json"))["items"]
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in objects}


@every_kind
def test_crd_is_served_without_a_complaint(kubectl, kind):
    status = kubectl.get("crd", crd_name(kind))["status"]
    conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
    assert conditions["Established"] == conditions["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions
    assert status["acceptedNames"]["shortNames"] == [kind.short_name]
    assert status["acceptedNames"]["categories"] == ["snaploom"]


@every_kind
def test_crd_comes_back_as_it_was_written(kubectl, kind):
    assert kubectl.get("crd", crd_name(kind))["spec"] == crd(kind)["spec"]


def test_applying_again_on_the_server_changes_nothing(kubectl):
    before = versions(kubectl)
    kubectl("apply", "--server-side", "--force-conflicts", "--warnings-as-errors", "-f", str(CRDS))
    assert versions(kubectl) == before
    assert kubectl("diff", "--server-side", "-f", str(CRDS)) == ""


def test_another_manager_applies_the_same_without_a_conflict(kubectl):
    kubectl("apply", "--server-side", "--field-manager=argocd", "-f", str(CRDS))
    assert kubectl("diff", "--server-side", "--field-manager=argocd", "-f", str(CRDS)) == ""


def test_applying_on_the_client_twice_changes_nothing(tmp_path):
    with running_control_plane(tmp_path) as plane:
        first = plane.kubectl("apply", "--warnings-as-errors", "-f", str(CRDS))
        assert first.count(" created\n") == len(KINDS)
        plane.await_crds(*map(crd_name, KINDS))
        before = versions(plane.kubectl)
        second = plane.kubectl("apply", "-f", str(CRDS))
        assert second.count(" unchanged\n") == len(KINDS)
        assert plane.kubectl("diff", "-f", str(CRDS)) == ""
        assert versions(plane.kubectl) == before


def fields(schema: Raw, path: str) -> Iterator[tuple[str, Raw]]:
    """Every field of a schema, with its path; Kubernetes' own fields are left to it."""
    for name, child in schema.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from fields(child, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from fields(schema[inner], path)


def published_schema(kubectl, kind):
    schemas = json.loads(kubectl("get", "--raw", SPECIFICATION))["components"]["schemas"]
    return schemas[f"io.snaploom.v1alpha1.{kind.name}"]


@every_kind
def test_every_field_that_is_published_is_described(kubectl, kind):
    schema = published_schema(kubectl, kind)
    silent = [path for path, field in fields(schema, kind.name) if not field.get("description")]
    assert schema["description"]
    assert [path for path in silent if not path.endswith(".metadata")] == []


@every_kind
def test_explaining_a_kind_names_every_field(kubectl, kind):
    output = kubectl("explain", kind.plural, "--recursive")
    named = re.findall(r"^ +(\S+)\t<", output, re.MULTILINE)
    expected = [path.rpartition(".")[2] for path, _ in fields(published_schema(kubectl, kind), "")]
    assert set(expected) <= set(named)
    assert len(named) >= len(expected)


@every_kind
@pytest.mark.parametrize("part", ["spec", "status"])
def test_explaining_a_part_describes_each_field(kubectl, kind, part):
    output = kubectl("explain", f"{kind.plural}.{part}")
    paragraphs = output.partition("\nFIELDS:\n")[2].strip().split("\n\n")
    assert paragraphs != [""]
    for paragraph in paragraphs:
        title, *words = paragraph.strip().splitlines()
        assert " ".join(words).strip() not in ("", "<no description>"), title


EXAMPLES = REPOSITORY / "examples"
OF_OTHERS = {"argo-workflows"}
"""Kinds that an API server with only ours does not have; `tests/orchestrators` reads them."""
FOLDERS = sorted(
    {path.parent for path in EXAMPLES.glob("*/*.yaml")} - {EXAMPLES / n for n in OF_OTHERS}
)
each_example = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def documents(folder):
    texts = [path.read_text("utf-8") for path in sorted(folder.glob("*.yaml"))]
    loaded = itertools.chain.from_iterable(map(yaml.safe_load_all, texts))
    return {(raw["kind"], raw["metadata"]["name"]): raw for raw in loaded if raw}


def stored(kubectl, namespace):
    return {
        (found["kind"], found["metadata"]["name"]): found
        for found in kubectl.list("snaploom", namespace)
    }


@each_example
@pytest.mark.parametrize("how", [("--server-side",), ()], ids=["server", "client"])
def test_example_is_stored_as_it_was_applied_and_stays_so(kubectl, namespace, folder, how):
    place = (*how, "--namespace", namespace, "-f", str(folder))
    kubectl("apply", "--warnings-as-errors", *place)
    first = stored(kubectl, namespace)
    assert {key: found["spec"] for key, found in first.items()} == {
        key: raw["spec"] for key, raw in documents(folder).items()
    }
    assert kubectl("diff", *place) == ""
    kubectl("apply", *place)
    assert stored(kubectl, namespace) == first


@each_example
def test_two_managers_of_an_example_agree(kubectl, namespace, folder):
    for manager in ("kubectl", "argocd"):
        how = ("--server-side", f"--field-manager={manager}", "--namespace", namespace)
        kubectl("apply", *how, "-f", str(folder))
        assert kubectl("diff", *how, "-f", str(folder)) == ""


def test_what_a_cluster_adds_is_accepted_where_pods_are_restricted(kubectl, namespace):
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    place = ("--namespace", namespace, "-f", str(EXAMPLES / "cluster" / "flights"))
    kubectl("apply", "--server-side", "--warnings-as-errors", *place)
    chart = yaml.safe_load((REPOSITORY / "charts/snaploom/Chart.yaml").read_text("utf-8"))
    (container,) = kubectl.get("pod", "console", namespace)["spec"]["containers"]
    assert container["image"] == f"snaploom-spark:{chart['appVersion']}"


def test_starter_of_init_is_accepted(kubectl, namespace):
    starter = REPOSITORY / "sparkjobs/src/snaploom/cli/templates/model.yaml"
    text = starter.read_text("utf-8").replace("@FOLDER@", "/data")
    output = kubectl("apply", "--server-side", "--namespace", namespace, "-f", "-", stdin=text)
    assert "outputdataset.snaploom.io/" in output


ROWS = [pytest.param(model, right, id=model.__name__) for model, right, _ in RULES]
FAULTS = [
    pytest.param(model, right, change, id=f"{model.__name__}-{'-'.join(change)}")
    for model, right, changes in RULES
    for change in changes
]


@pytest.mark.parametrize(("model", "right"), ROWS)
def test_what_is_right_is_accepted_as_written_and_with_defaults(judge, model, right):
    assert judge.complaint(*PLACES[model](right)) == ""
    assert judge.complaint(*PLACES[model](model.parse(right).dump())) == ""


@pytest.mark.parametrize(("model", "right", "change"), FAULTS)
def test_what_is_wrong_is_refused(judge, model, right, change):
    complaint = judge.complaint(*PLACES[model](changed(right, change)))
    assert bool(complaint) is ((model, change) not in BEHIND_TEXTS)


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        pytest.param(model, rule, id=f"{model.__name__}-{number}")
        for model, _, _ in RULES
        for number, rule in enumerate(vars(model).get("cel_rules", ()))
    ],
)
def test_every_rule_speaks_through_the_api_server(judge, model, rule):
    rows = [(right, changes) for table, right, changes in RULES if table is model]
    wrong = [changed(right, change) for right, changes in rows for change in changes]
    assert any(rule.message in judge.complaint(*PLACES[model](part)) for part in wrong)


CHOICES = [
    pytest.param(model, changed(right, change), id=f"{model.__name__}-{'-'.join(change)}")
    for model, right, changes in RULES
    for change in changes
    if model.one_of and not model.one_of_by_count  # these are counted by the schema instead
    if len(changed(right, change).keys() & set(model.one_of)) != 1
]


@pytest.mark.parametrize(("model", "wrong"), CHOICES)
def test_every_choice_speaks_through_the_api_server(judge, model, wrong):
    expected = f"expected exactly one of {', '.join(model.one_of)}"
    assert expected in judge.complaint(*PLACES[model](wrong))


LENGTH_AND_START = {"intervalStartDate": "2024-01-01[Europe/Berlin]", "intervalLength": "7d"}
SHORT = [
    (common.DataType, "bigint"),
    (common.DataType, "struct<a: array<decimal(10,2)>, `b c` timestamp_ntz NOT NULL>"),
    (common.TimeOffset, "P1Y2M3DT4H5.5S"),
    (common.TimeOffset, "0s"),
    (common.LocalDateTime, "2024-01-01T06:30"),
    (outputdataset.FromInterval, LENGTH_AND_START),
]
NO_SHORT_FORM = [
    (common.DataType, "long list"),
    (common.DataType, 5),
    (common.TimeOffset, "7 days"),
    (common.TimeOffset, "5m"),
    (common.TimeOffset, 7),
    (common.TimeOffset, ["7d"]),
    (common.TimeOffset, {"days": 7}),
    (common.LocalDateTime, "01.01.2024"),
    (outputdataset.FromInterval, LENGTH_AND_START | {"intervalLength": "0d"}),
    (outputdataset.FromInterval, LENGTH_AND_START | {"intervalLength": {"hour": 0}}),
]


@pytest.mark.parametrize(("model", "text"), SHORT)
def test_a_short_form_is_accepted_and_kept(judge, model, text):
    assert judge.complaint(*PLACES[model](text)) == ""


@pytest.mark.parametrize(("model", "text"), NO_SHORT_FORM)
def test_what_is_no_short_form_is_refused(judge, model, text):
    assert judge.complaint(*PLACES[model](text))


@pytest.mark.parametrize("place", ["$(root)/orders/", "s3://lake/$(day)/"])
def test_a_variable_that_was_not_replaced_is_refused(judge, place):
    folder = {"folderUri": place, "snapshotFormat": {"hivePartitioned": {}}}
    assert "folderUri" in judge.complaint(*PLACES[outputfolder.OutputFolder](folder))
