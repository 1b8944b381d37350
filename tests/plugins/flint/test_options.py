import pytest

from snaploom.errors import StatementInvalid
from snaploom.plugins.flint.options import Auth, OpenSearchOptions, RefreshPolicy, parse_options


def test_defaults_are_those_of_the_seed() -> None:
    options = parse_options({})
    assert options == OpenSearchOptions()
    assert (options.host, options.port, options.scheme) == ("localhost", 9200, "http")
    assert (options.auth, options.region) == (Auth.NOAUTH, "us-west-2")
    assert (options.batch_size, options.scroll_size) == (1000, 100)
    assert (options.refresh_policy, options.id_name) == (RefreshPolicy.NONE, "")


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("false", RefreshPolicy.NONE),
        ("NONE", RefreshPolicy.NONE),
        ("true", RefreshPolicy.IMMEDIATE),
        ("IMMEDIATE", RefreshPolicy.IMMEDIATE),
        ("wait_for", RefreshPolicy.WAIT_UNTIL),
        ("WAIT_UNTIL", RefreshPolicy.WAIT_UNTIL),
    ],
)
def test_refresh_policies_have_two_names(text: str, policy: RefreshPolicy) -> None:
    assert parse_options({"write.refresh_policy": text}).refresh_policy is policy


@pytest.mark.parametrize(
    ("scheme", "uri"), [("http", "http://search:80"), ("https", "https://search:443")]
)
def test_port_minus_one_is_the_protocols_own(scheme: str, uri: str) -> None:
    assert parse_options({"host": "search", "port": "-1", "scheme": scheme}).uri == uri


def test_names_are_compared_without_case() -> None:
    assert parse_options({"READ.Scroll_Size": "7"}).scroll_size == 7


@pytest.mark.parametrize("auth", ["false", "noauth", "NOAUTH"])
def test_no_auth_has_several_names(auth: str) -> None:
    assert parse_options({"auth": auth}).auth is Auth.NOAUTH


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hots": "x"}, "hots"),
        ({"port": "many"}, "port"),
        ({"port": "0"}, "port"),
        ({"scheme": "ftp"}, "scheme"),
        ({"auth": "kerberos"}, "auth"),
        ({"auth": "basic"}, "username"),
        ({"write.batch_size": "0"}, "batch_size"),
        ({"write.refresh_policy": "soon"}, "refresh_policy"),
        ({"read.scroll_size": "10001"}, "scroll_size"),
        ({"ignore.id_column": "true"}, "id_name"),
    ],
)
def test_bad_options_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(StatementInvalid, match=message):
        parse_options(options)


def test_no_password_is_printed() -> None:
    options = parse_options({"auth": "basic", "username": "u", "auth.password": "s3cr3t"})
    assert options.password == "s3cr3t"
    assert "s3cr3t" not in repr(options)
