"""One table drives both judges: the parser, and the schema with the rules of the API server."""

import cel
import pytest
from pydantic import ValidationError
from support.crdschema import faults

from snaploom.models import (
    common,
    datarelationship,
    datasource,
    fieldtransformer,
    metadataapplicator,
    outputdataset,
    outputfolder,
    podtemplate,
    run,
    skippingindex,
)
from snaploom.models.base import ApiModel
from snaploom.models.schema import as_list, structural_schema

LONG = {"long": {}}
FIELD = {"fieldName": "a", "dataType": LONG}
START = {
    "year": 2020, "month": 2, "day": 29, "hour": 0, "minute": 0, "second": 0, "nano": 0,
    "timezone": "UTC",
}  # fmt: skip
JDBC = {
    "driver": "POSTGRESQL", "host": "db", "database": "shop", "tableReference": "t",
    "credentials": {"fromSecret": {"name": "db"}}, "snapshot": {"fromReadTime": {}},
}  # fmt: skip
FOLDER = {"folderUri": "/out/", "snapshotFormat": {"hivePartitioned": {}}}
INDEX = {
    "target": {"path": {"uri": "/data", "format": "parquet"}},
    "indexes": [{"type": "MIN_MAX", "column": "a"}],
    "store": {"parquet": {"location": "/index"}},
}
SCHEDULE = {"schedule": {"cron": "0 * * * *"}}
SELECTORS = [{"metadata": {"k": "v"}}]

# model, what is right, and ways in which it can be wrong: keys to replace (None takes one away).
RULES = [
    (common.DataType, LONG, [{"string": {}}, {"long": None}, {"lang": {}}, {"long": 1}]),
    (
        common.DataType,
        {"array": {"elementType": LONG}},
        [{"array": {}}, {"array": {"elementType": {}}}, {"array": {"elementType": "long"}}],
    ),
    (
        common.DecimalType,
        {"precision": 10, "scale": 10},
        [{"scale": 11}, {"precision": 39}, {"precision": 0}, {"scale": -1}, {"scale": None}],
    ),
    (common.TimeOffset, {"day": 1}, [{"day": -1}, {"day": 10**12 + 1}, {"day": "1"}, {"days": 1}]),
    (
        datasource.DataSourceSpec,
        {"jdbc": JDBC},
        [
            {"jdbc": None},
            {"simpleVirtual": {"dataSource": "a", "alias": "a", "dataQuery": "SELECT 1"}},
        ],
    ),
    (
        datasource.Jdbc,
        JDBC,
        [
            {"url": "jdbc:h2:mem:x"},
            {"database": None},
            {"port": 0},
            {"port": 65536},
            {"driver": "DB2"},
            {"credentials": {}},
            {"snapshot": {"fromReadTime": {}, "fromFieldValue": {"fieldName": "a"}}},
            {"metadataApplicators": ["a", "a"]},
        ],
    ),
    (
        datasource.ComplexVirtual,
        {
            "dataSources": [{"dataSource": "a", "alias": "a"}],
            "snapshotQuery": "SELECT 1",
            "dataQuery": "SELECT 1",
        },
        [
            {"dataSources": []},
            {"dataSources": [{"dataSource": x, "alias": "a"} for x in "ab"]},
            {"dataSources": [{"dataSource": "a", "alias": "1a"}]},
            {"dataQuery": ""},
        ],
    ),
    (
        datarelationship.KeyComponent,
        {"fields": [FIELD]},
        [{"fields": [FIELD, FIELD]}, {"fields": []}, {"castDataType": {}}],
    ),
    (
        datarelationship.Representation,
        {"dataSources": ["a"], "joinKey": [{"fields": [FIELD]}]},
        [{"dataSources": ["a", "a"]}, {"dataSources": ["-a"]}, {"joinKey": []}],
    ),
    (
        fieldtransformer.TransformerSelector,
        {"metadata": {"k": "v"}},
        [{"metadata": None}, {"coordinateIncludeRegex": ""}, {"metadata": {"k": 1}}],
    ),
    (
        fieldtransformer.Rename,
        {"pattern": "a", "replacement": "b"},
        [{"to": "c"}, {"pattern": None}, {"replacement": None}],
    ),
    (
        fieldtransformer.Transformer,
        {"drop": {}, "selectors": SELECTORS},
        [{"drop": None}, {"cast": {"dataType": LONG}}, {"selectors": []}, {"drop": {"a": 1}}],
    ),
    (
        metadataapplicator.CoordinateSelector,
        {"coordinateExcludeRegex": "a"},
        [{"coordinateExcludeRegex": None}],
    ),
    (
        outputdataset.LocalDateTime,
        START,
        [
            {"year": 2021},
            {"year": 1900},
            {"month": 4, "day": 31},
            {"day": 32},
            {"month": 13},
            {"hour": 24},
            {"nano": None},
        ],
    ),
    (
        outputdataset.FromInterval,
        {"intervalStartDate": START, "intervalLength": {"nano": 1}},
        [{"intervalLength": {}}, {"intervalLength": {"day": 0}}, {"preference": "LATEST"}],
    ),
    (
        outputdataset.FromCron,
        {"schedule": "0 0 * * *", "startDate": "2020-01-01T00:00:00Z", "length": {"year": 1}},
        [{"length": {"hour": 0}}, {"schedule": ""}],
    ),
    (
        outputdataset.SnapshotFilter,
        {"fromInterval": {"intervalStartDate": START, "intervalLength": {"day": 1}}},
        [{"fromInterval": None}],
    ),
    (
        outputdataset.OtherDataSource,
        {"dataSource": "a", "fieldName": "a"},
        [
            {"warnNullKeyRatio": 1.5},
            {"warnNullKeyRatio": -0.5},
            {"fieldName": "1"},
            {"pathMissingMode": "SKIP_WARN"},
            {"transformations": {"groupBy": {"fieldNames": ["a", "a"]}}},
        ],
    ),
    (
        outputdataset.UsedRelationship,
        {"name": "r", "antiPriority": 1},
        [
            {"antiPriority": 0},
            {"antiPriority": 1_000_001},
            {"exclusions": [{"dataSourceSet": ["a"]}]},
        ],
    ),
    (outputfolder.Tier, {"olderThan": {}, "keepOneEvery": {"week": 1}}, [{"keepOneEvery": {}}]),
    (
        outputfolder.OutputFolder,
        FOLDER,
        [
            {"folderUri": "/out"},
            {"folderUri": "/"},
            {"dataFormat": "JSONL", "dataCompression": "ZSTD"},
            {"dataFormat": "AVRO", "dataCompression": "GZIP"},
            {"snapshotFormat": {}},
            {"snapshotAutoDelete": {"maxOldSnapshots": -2}},
        ],
    ),
    (run.Freshness, {"maxAge": {"hour": 1}}, [{"maxAge": {}}]),
    (
        run.DynamicAllocation,
        {"minExecutors": 2, "maxExecutors": 2},
        [{"minExecutors": 3}, {"maxExecutors": 0}],
    ),
    (run.SparkSettings, {"image": "spark"}, [{"imagePullPolicy": "Sometimes"}]),
    (run.DriverSettings, {"memory": "2g"}, [{"memory": "2"}, {"cores": 0}]),
    (
        podtemplate.EnvironmentVariable,
        {"name": "A", "value": "b"},
        [{"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}, {"name": "A B"}],
    ),
    (podtemplate.Toleration, {"operator": "Exists"}, [{"operator": "Equal"}, {"operator": None}]),
    (
        podtemplate.Volume,
        {"name": "v", "emptyDir": {}},
        [{"hostPath": {"path": "/"}}, {"emptyDir": None}, {"configMap": {"name": "c"}}],
    ),
    (
        podtemplate.VolumeMount,
        {"name": "v", "mountPath": "/v"},
        [{"mountPath": "v"}, {"mountPath": "/a:b"}],
    ),
    (
        podtemplate.PodTemplate,
        {"env": [{"name": "A"}]},
        [{"env": [{"name": "A"}, {"name": "A"}]}, {"hostNetwork": True}],
    ),
    (
        skippingindex.Index,
        {"type": "MIN_MAX", "column": "a"},
        [{"columns": ["b"]}, {"column": None}, {"type": "min_max"}, {"column": ""}],
    ),
    (
        skippingindex.OpenSearchStore,
        {"host": "search", "auth": "SIGV4", "region": "eu-west-1"},
        [{"region": None}, {"auth": "BASIC"}, {"credentials": {"fromSecret": {"name": "s"}}}],
    ),
    (
        skippingindex.SkippingIndexSpec,
        INDEX | {"refresh": {"trigger": "SCHEDULE"}, "run": SCHEDULE},
        [
            {"run": {}},
            {"run": None},
            {"refresh": {"trigger": "ON_PUBLISH"}},
            {"indexes": []},
            {"store": {}},
        ],
    ),
]
ROWS = [pytest.param(model, right, id=model.__name__) for model, right, _ in RULES]
FAULTS = [
    pytest.param(model, right, change, id=f"{model.__name__}-{'-'.join(change)}")
    for model, right, changes in RULES
    for change in changes
]


def changed(right, change):
    return {key: value for key, value in (right | change).items() if value is not None}


@pytest.mark.parametrize(("model", "right"), ROWS)
def test_what_is_right_is_accepted_by_parser_and_schema(model, right):
    assert faults(structural_schema(model), right) == []
    assert faults(structural_schema(model), model.parse(right).dump()) == []


@pytest.mark.parametrize(("model", "right", "change"), FAULTS)
def test_what_is_wrong_is_refused_by_parser_and_schema(model, right, change):
    wrong = changed(right, change)
    assert faults(structural_schema(model), wrong)
    with pytest.raises(ValidationError):
        model.parse(wrong)


def all_models(base=ApiModel):
    found = {
        model for model in base.__subclasses__() if model.__module__.startswith("snaploom.models")
    }
    return found.union(*(all_models(model) for model in found))


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        pytest.param(model, rule, id=f"{model.__name__}-{number}")
        for model in sorted(all_models(), key=lambda model: model.__name__)
        for number, rule in enumerate(vars(model).get("cel_rules", ()))
    ],
)
def test_every_rule_is_broken_by_a_row_of_the_table(model, rule):
    rows = [(right, changes) for table, right, changes in RULES if table is model]
    wrong = [changed(right, change) for right, changes in rows for change in changes]
    assert any(is_broken(rule.rule, data) for data in wrong)


def is_broken(rule, data):
    try:
        return cel.evaluate(rule, {"self": data}) is False
    except (RuntimeError, TypeError, ValueError):  # data of the wrong form: the schema refuses it
        return False


def test_rule_of_one_of_escapes_words_that_cel_reserves():
    class Choice(ApiModel):
        """A choice."""

        one_of = ("null", "plain")

        null: common.Empty | None = None
        """Nothing."""
        plain: common.Empty | None = None
        """Something."""

    schema = structural_schema(Choice)
    (rule,) = as_list(schema["x-kubernetes-validations"])
    assert rule["message"] == "expected exactly one of null, plain"
    assert "has(self.__null__)" in rule["rule"]
    assert faults(schema, {"null": {}}) == []
    assert faults(schema, {"null": {}, "plain": {}}) == ["expected exactly one of null, plain"]
