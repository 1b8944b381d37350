"""Settings of Hadoop's S3 client from the environment."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from snaploom.run.session.spark import CLASSIC, s3a_settings

PROVIDER = "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider"


@pytest.mark.parametrize(
    ("environment", "settings"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"AWS_REGION": "eu-1"}, {"endpoint.region": "eu-1"}, id="region"),
        pytest.param(
            {"AWS_ENDPOINT_URL": "http://a", "AWS_ENDPOINT_URL_S3": "http://b"},
            {"endpoint": "http://b", "path.style.access": "true", "endpoint.region": "us-east-1"},
            id="endpoint",
        ),
        pytest.param(
            {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": "role"},
            {"aws.credentials.provider": PROVIDER},
            id="role",
        ),
        pytest.param({"AWS_SECRET_ACCESS_KEY": "secret", "AWS_ACCESS_KEY_ID": "k"}, {}, id="keys"),
    ],
)
def test_environment_becomes_settings_without_secrets(
    environment: Mapping[str, str], settings: Mapping[str, str]
) -> None:
    settings = {"input.stream.type": CLASSIC, **settings}
    expected = {f"spark.hadoop.fs.s3a.{name}": value for name, value in settings.items()}
    assert s3a_settings(environment) == expected
