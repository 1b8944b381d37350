"""`snaploom init --from` over a bucket of a real S3 server."""

import secrets
from pathlib import Path

from support.declared.shop import snaploom
from support.discovery.datasets import shop
from support.servers.s3servers import BUCKET, S3Server, environment_of

from snaploom.files.stores import open_store


def test_a_bucket_is_read_as_a_folder(tmp_path: Path, versitygw: S3Server) -> None:
    shop().write(tmp_path / "data")
    uri = f"s3://{BUCKET}/{secrets.token_hex(4)}"
    with environment_of(versitygw):
        store = open_store(uri, create=True)
        for file in (tmp_path / "data").rglob("*.*"):
            if file.is_file():
                key = file.relative_to(tmp_path / "data").as_posix()
                store.put_if_absent(key, file.read_bytes())
        result = snaploom("init", tmp_path / "model", "--from", uri)
    assert result.code == 0, result.err
    assert "100.0 % of 6 values of orders.store_id are in stores.id" in result.out
    text = (tmp_path / "model" / "sources.yaml").read_text()
    assert f"{uri.replace('s3:', 's3a:')}/orders_????????.csv" in text
    assert versitygw.secret not in text
    assert snaploom("validate", "-f", tmp_path / "model").code == 0
