"""Invalid declarations: the same clear error each from `validate`, `plan` and `run`."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.declared.declarations import complex_, document, simple
from support.declared.shop import CommandResult, Shop, day_source, same_key, snaploom, wide


def headings(result: CommandResult) -> list[str]:
    return [line for line in result.err.splitlines() if line.startswith("error ")]


def assert_one_error(result: CommandResult, code: str, *texts: str) -> None:
    """Check that there is one error, with its place, what was found and expected, and the fix."""
    assert result.code == 2, result.err
    assert [line.split()[1] for line in headings(result)] == [code], result.err
    for text in ("found:", "expected:", "fix:", *texts):
        assert text in result.err
    assert "Traceback" not in result.err


def laughs() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    return "\n".join([*lines, *(f"a{i}: &a{i} [{f'*a{i - 1}, ' * 10}]" for i in range(1, 10))])


TEXTS: list[tuple[str, Callable[[str], str], str, tuple[str, ...]]] = [
    ("tabs", lambda t: t.replace("  hdfsLike", "\thdfsLike", 1), "SL104",
     ("model.yaml:6:1", "indent with spaces")),
    ("duplicate key", lambda t: t.replace("name: customers\n", "name: customers\n  name: b\n", 1),
     "SL105", ("model.yaml:20:3 DataSource/customers metadata.name", "line 19, again on line 20")),
    ("billion laughs", lambda t: laughs(), "SL102", ("model.yaml:", "at most 100,000")),
    ("10 MB", lambda t: "#" * 10 * 2**20 + "\n" + t, "SL102", ("10,48", "at most 4,194,304 bytes")),
    ("apiVersion", lambda t: t.replace("v1alpha1", "v1", 1), "SL108",
     ("model.yaml:1:13 DataSource/orders apiVersion", "Write `apiVersion: snaploom.io/v1alpha1`")),
    ("misspelt key", lambda t: t.replace("sourceUriGlobs", "sourceUriGlob", 1), "SL110",
     ("model.yaml:8:5 DataSource/orders spec.hdfsLike.sourceUriGlob",
      "did you mean `sourceUriGlobs`?")),
    ("misspelt kind", lambda t: t.replace("kind: DataSource", "kind: DataSorce", 1), "SL109",
     ("model.yaml:2:7 DataSorce/orders kind", "did you mean `DataSource`?")),
    ("misspelt name", lambda t: t.replace("dataSource: customers", "dataSource: customer"), "SL130",
     ("otherDataSources[0].dataSource", "did you mean `customers`?")),
    ("no resource", lambda t: "", "SL119", ("no resource of snaploom.io",)),
    ("unknown anchor", lambda t: t.replace("name: orders", "name: *orders", 1), "SL104",
     ("model.yaml:4:9", "'*orders' has no anchor")),
    ("tag", lambda t: t.replace("name: orders", "name: !!python/none orders", 1), "SL104",
     ("this tag is not supported",)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("spoil", "code", "texts"), [pytest.param(*case[1:], id=case[0]) for case in TEXTS]
)
def test_a_spoilt_text_has_one_error(tmp_path, spoil, code, texts):
    model = Shop(tmp_path).write()
    model.write_text(spoil(model.read_text("utf-8")), "utf-8")
    assert_one_error(snaploom("validate", model), code, *texts)


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("data", "SL170", "reserved for the columns of the source itself"),
        ("DATA", "SL170", "reserved for the columns of the source itself"),
        ("snapshot_epoch", "SL170", "taken by the partition column"),
        ("cust-omer", "SL113", "letters, digits and '_', not beginning with a digit"),
        ("1st", "SL113", "letters, digits and '_', not beginning with a digit"),
        ("", "SL113", "at least 1 character"),
    ],
)
def test_a_field_name_that_cannot_be_has_one_error(tmp_path, name, code, text):
    result = Shop(tmp_path).other(fieldName=name).validate()
    assert_one_error(result, code, "OutputDataset/wide", "otherDataSources[0].fieldName", text)


def test_field_names_that_are_equal_but_for_case_have_one_error(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.documents[2:] = [
        day_source(tmp_path, "people"),
        same_key("customer-id", "customer_id", "orders", "customers", "people"),
        wide(
            tmp_path,
            {"dataSource": "customers", "fieldName": "who"},
            {"dataSource": "people", "fieldName": "WHO"},
        ),
    ]
    assert_one_error(shop.validate(), "SL170", "otherDataSources[1].fieldName", "found:    WHO")


@pytest.mark.parametrize(
    "circle",
    [
        pytest.param(
            [simple("a", "SELECT * FROM c", "b"), simple("b", "SELECT * FROM c", "a")], id="simple"
        ),
        pytest.param(
            [
                complex_("a", "SELECT {{ SNAPSHOT | UNIX_SECONDS }} AS at, * FROM c0", "b"),
                complex_("b", "SELECT {{ SNAPSHOT | UNIX_SECONDS }} AS at, * FROM c0", "a"),
            ],
            id="complex",
        ),
    ],
)
def test_virtual_sources_in_a_circle_have_one_error(tmp_path, circle):
    shop = Shop(tmp_path)
    shop.documents.extend(circle)
    result = shop.validate()
    assert_one_error(result, "SL155", "DataSource/a -> DataSource/b -> DataSource/a", "model.yaml:")


def test_a_resource_declared_twice_has_one_error(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.documents.append(day_source(tmp_path, "orders"))
    assert_one_error(shop.validate(), "SL118", "DataSource/orders metadata.name", "line 4")


def test_a_password_in_a_faulty_source_is_never_shown(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    secret = {"fromPlaintext": {"user": "u", "password": "hunter2", "pasword": "hunter2"}}
    spec = {"driver": "POSTGRESQL", "credentials": secret, "url": "jdbc:x?password=hunter2"}
    shop.documents.append(document("DataSource", "db", {"jdbc": spec}))
    result = shop.validate()
    assert result.code == 2
    assert "hunter2" not in result.err + result.out


def test_plan_and_run_refuse_what_validate_refuses(tmp_path: Path) -> None:
    shop = Shop(tmp_path).other(fieldName="data")
    for result in (shop.validate(), shop.plan(), shop.plan("--offline"), shop.run()):
        assert_one_error(result, "SL170", "model.yaml:")
    assert not shop.published.exists()
