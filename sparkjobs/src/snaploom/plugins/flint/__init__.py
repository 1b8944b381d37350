"""Skipping indexes in OpenSearch in Flint's form, and the data source `flint`."""

from typing import TYPE_CHECKING

from snaploom.installed import attributes_of

if TYPE_CHECKING:
    from snaploom.plugins.flint.datasource import offer as offer
else:
    __getattr__ = attributes_of(__name__, {"offer": "snaploom.plugins.flint.datasource:offer"})
