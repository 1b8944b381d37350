"""The checker of signatures agrees with the examples that AWS publishes."""

import hashlib

import pytest
from support.servers.awssignature import Account, canonical
from support.servers.guardedproxy import Request

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
ACCOUNT = Account("AKIDEXAMPLE", SECRET, "us-east-1", "service")
MOMENT = "20150830T123600Z"


@pytest.mark.parametrize(
    ("method", "target", "signature"),
    [
        ("GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "GET",
            "/?Param2=value2&Param1=value1",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
    ],
)
def test_published_requests_have_their_signatures(method: str, target: str, signature: str) -> None:
    headers = {"host": "example.amazonaws.com", "x-amz-date": MOMENT}
    request = Request(method, target, headers)
    digest = hashlib.sha256(b"").hexdigest()
    text = canonical(request, ["host", "x-amz-date"], digest)
    assert ACCOUNT.sign(MOMENT, text) == signature


def test_the_published_signing_key_is_derived() -> None:
    key = Account("AKIDEXAMPLE", SECRET, "us-east-1", "iam").signing_key("20150830")
    assert key.hex() == "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"
