"""Contracts of outputs (Open Data Contract Standard)."""

from typing import TYPE_CHECKING

from snaploom.installed import attributes_of

if TYPE_CHECKING:
    from open_data_contract_standard.model import (
        OpenDataContractStandard as OpenDataContractStandard,
    )
else:
    __getattr__ = attributes_of(
        __name__,
        {"OpenDataContractStandard": "open_data_contract_standard.model:OpenDataContractStandard"},
    )

COMMANDS = (
    (
        "contract",
        "snaploom.plugins.contracts.check:contract",
        "Write the data contract of an output, or check one.",
    ),
)
