"""Packages of orchestrators, which lie in folders of their own."""

import subprocess
from typing import Any

from support.declared.declarations import document
from support.declared.shop import Shop, wide
from support.documentation.examples import REPOSITORY


def with_second_output(shop: Shop) -> Shop:
    """Add the output `second` of the source `published`, the files of `wide`."""
    shop.documents += [_of_published(shop), _reading(shop)]
    return shop


def _of_published(shop: Shop) -> dict[str, Any]:
    spec = {
        "format": "parquet",
        "sourceUriGlobs": [f"file://{shop.published}/data/*/*.parquet"],
        "sourceUriPrefix": f"file://{shop.published}/data/",
        "snapshot": {"fromReadTime": {}},
    }
    return document("DataSource", "published", {"hdfsLike": spec})


def _reading(shop: Shop) -> dict[str, Any]:
    output = wide(shop.folder, relationships=())
    output["metadata"]["name"] = "second"
    output["spec"]["dataModel"]["rootDataSource"]["dataSource"] = "published"
    output["spec"]["outputFolder"]["folderUri"] = f"file://{shop.folder}/second/"
    return output


def orchestrators_folder(*name: str) -> str:
    """Where `.ci/orchestrators` has installed them, for PYTHONPATH."""
    script = [str(REPOSITORY / ".ci" / "orchestrators"), *name]
    return subprocess.run(script, check=True, capture_output=True, text=True).stdout.strip()
