"""Formats and options that may be declared, and what each option may hold."""

from __future__ import annotations

import pytest
from support.declared.declarations import files, found, parsed, spoilt

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.policy.fileformats import BUILT_IN, REFUSED, spark_format
from snaploom.policy.formatfaults import FormatPlace, format_findings
from snaploom.validate.validator import validate

PLACE = FormatPlace("", "format", "options")


@pytest.mark.parametrize(
    ("data_format", "options"),
    [
        ("csv", {"header": "TRUE", "sep": "\t", "quote": "", "encoding": "ISO-8859-1"}),
        ("CSV", {"SEP": ";", "samplingRatio": "0.1", "maxColumns": "20480"}),
        ("json", {"mode": "failfast", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss"}),
        ("csv", {"charset": "utf-16le"}),
        ("json", {"encoding": "ISO-8859-1", "lineSep": "\n"}),
        ("json", {"encoding": "UTF-16", "multiLine": "TRUE"}),
        ("xml", {"rowTag": "o", "compression": "gzip", "encoding": "windows-1252"}),
        ("avro", {"positionalFieldMatching": "false"}),
        ("text", {"encoding": "utf-8"}),
        ("avro", {"avroSchema": '{"type": "record", "name": "r", "fields": []}'}),
        ("parquet", {"mergeSchema": "true", "recursiveFileLookup": "false"}),
        ("orc", {"modifiedBefore": "2020-01-31T00:00:00"}),
        ("text", {"wholetext": "true", "lineSep": "\n"}),
        ("binaryFile", {"pathGlobFilter": "*.{png,jpg}"}),
        ("delta", {}),
        ("Iceberg", {}),
    ],
)
def test_formats_and_options_of_the_list_are_sound(
    data_format: str, options: dict[str, str]
) -> None:
    assert format_findings(data_format, options, NO_ALLOWANCES, PLACE) == ()


@pytest.mark.parametrize(
    ("data_format", "options", "option"),
    [
        ("jdbc", {}, None),
        ("org.apache.spark.sql.execution.datasources.csv.CSVFileFormat", {}, None),
        ("com.databricks.spark.csv", {}, None),
        ("statestore", {}, None),
        ("csv ", {}, None),
        ("csv", {"header": "maybe"}, "header"),
        ("csv", {"heder": "true"}, "heder"),
        ("csv", {"compression": "org.example.Codec"}, "compression"),
        ("csv", {"maxColumns": "2000000000"}, "maxColumns"),
        ("csv", {"inputBufferSize": "2147483647"}, "inputBufferSize"),
        ("csv", {"sep": ";", "SEP": ","}, "SEP"),
        ("csv", {"encoding": "windows-1252"}, "encoding"),
        ("csv", {"CharSet": "utf8"}, "CharSet"),
        ("json", {"encoding": "latin1"}, "encoding"),
        ("json", {"encoding": "ISO-8859-1"}, "encoding"),
        ("json", {"charset": "UTF-16", "lineSep": "\n"}, "charset"),
        ("text", {"encoding": "ISO-8859-1"}, "encoding"),
        ("xml", {"encoding": "rot13"}, "encoding"),
        ("xml", {"encoding": "no-such-set"}, "encoding"),
        ("avro", {"positionalFieldMatching": "true"}, "positionalFieldMatching"),
        ("json", {"samplingRatio": "0"}, "samplingRatio"),
        ("json", {"locale": "x" * 99}, "locale"),
        ("avro", {"avroSchema": "[" * 8000}, "avroSchema"),
        ("avro", {"avroschemaurl": "http://x"}, "avroschemaurl"),
        ("parquet", {"parquet.encryption.kms.client.class": "x"},
         "parquet.encryption.kms.client.class"),
        ("parquet", {"sep": ";"}, "sep"),
        ("text", {"fs.s3a.endpoint": "x"}, "fs.s3a.endpoint"),
        ("delta", {"versionAsOf": "1"}, "versionAsOf"),
    ],
)  # fmt: skip
def test_others_are_refused(data_format: str, options: dict[str, str], option: str | None) -> None:
    (fault,) = format_findings(data_format, options, NO_ALLOWANCES, PLACE)
    assert fault.path == ("format" if option is None else f"options.{option}")
    assert fault.code == ("SL136" if option is None else "SL137")


@pytest.mark.parametrize("option", REFUSED)
def test_options_that_reach_out_are_refused_with_the_reason(option: str) -> None:
    for data_format in BUILT_IN:
        (fault,) = format_findings(data_format, {option: "hunter2"}, NO_ALLOWANCES, PLACE)
        assert REFUSED[option] in fault.message
        assert "hunter2" not in str(fault)
        assert f"--allow options={data_format}.{option}" in fault.hint


def test_an_administrator_adds_formats_and_options() -> None:
    allow = Allowances(formats=("xml2", "com.example.Source"), options=("CSV.basepath", "xml2.a"))
    assert format_findings("csv", {"basePath": "/data"}, allow, PLACE) == ()
    assert format_findings("XML2", {"A": "x"}, allow, PLACE) == ()
    assert spark_format("XML2", allow) == "xml2"
    assert spark_format("com.example.Source", allow) == "com.example.Source"
    assert [fault.path for fault in format_findings("xml2", {"b": "x"}, allow, PLACE)] == [
        "options.b"
    ]


def test_findings_name_the_field_and_the_list() -> None:
    raw = files("orders", format="jdbc", formatOptions={"url": "jdbc:h2:mem:x;INIT=RUNSCRIPT"})
    (finding, *_) = [f for f in validate(parsed([raw])) if f.code == "SL136"]
    assert finding.path == "spec.hdfsLike.format"
    assert "the list `formats` (chart value allow.formats, or --allow formats=jdbc)" in finding.hint


def test_target_of_an_index_is_judged_like_a_source() -> None:
    index = {
        "apiVersion": "snaploom.io/v1alpha1",
        "kind": "SkippingIndex",
        "metadata": {"name": "i"},
        "spec": {
            "target": {"path": {"uri": "/data", "format": "csv", "options": {"basePath": "/"}}},
            "indexes": [{"type": "MIN_MAX", "column": "id"}],
            "store": {"parquet": {"location": "/indexes"}},
        },
    }
    assert found([index]) == [("SL137", "SkippingIndex/i", "spec.target.path.options.basePath")]
    by_format = spoilt(index, "spec.target.path", {"uri": "/data", "format": "jdbc"})
    assert found([by_format]) == [("SL136", "SkippingIndex/i", "spec.target.path.format")]
