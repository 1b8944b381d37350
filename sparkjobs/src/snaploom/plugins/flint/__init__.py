"""Skipping indexes in OpenSearch in Flint's form, and the data source `flint`."""

from typing import TYPE_CHECKING

from snaploom import ondemand

if TYPE_CHECKING:
    from snaploom.plugins.flint.datasource import offer as offer
else:
    __getattr__ = ondemand.attributes_of(
        __name__, {"offer": "snaploom.plugins.flint.datasource:offer"}
    )
