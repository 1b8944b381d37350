"""Metadata of Parquet files that anybody may have written, read within bounds."""

from typing import TYPE_CHECKING

from snaploom.installed import attributes_of

if TYPE_CHECKING:
    from snaploom.parquet.footers import read_footer as read_footer
else:
    __getattr__ = attributes_of(__name__, {"read_footer": "snaploom.parquet.footers:read_footer"})
