"""Configures Hadoop's S3 client from the environment, so that Spark uses the same server.

Spark itself hands over keys and `AWS_ENDPOINT_URL`, but no region, and not that servers other than
Amazon's have their buckets in the path. Nothing secret passes through here.
"""

from __future__ import annotations

from collections.abc import Mapping

from snaploom.storage.cloudstores import s3_endpoint

_PREFIX = "spark.hadoop.fs.s3a."
CLASSIC = "classic"
"""How objects are read. Hadoop's own choice from 3.5 on keeps in memory what it knows of an object,
for all readers: one that is replaced is asked for as the old one, which S3 refuses."""
_OF_A_ROLE = "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider"


def s3a_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings of a session, from the variables that `snaploom.storage.cloudstores` goes by."""
    settings = {"input.stream.type": CLASSIC}
    endpoint = s3_endpoint(environment)
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if endpoint is not None:
        settings["endpoint"] = endpoint
        settings["path.style.access"] = "true"
        # Without one, the client asks Amazon in which region the bucket is.
        region = region or "us-east-1"
    if region:
        settings["endpoint.region"] = region
    if environment.get("AWS_WEB_IDENTITY_TOKEN_FILE") and not environment.get("AWS_ACCESS_KEY_ID"):
        settings["aws.credentials.provider"] = _OF_A_ROLE
    return {f"{_PREFIX}{name}": value for name, value in settings.items()}
