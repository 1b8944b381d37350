"""Datasets that outputs publish, under the names that other tools use for them."""

from __future__ import annotations

from snaploom.models.outputdataset import OutputDataset
from snaploom.models.outputfolder import DataFormat
from snaploom.planning.datasetnames import DatasetName, place_dataset
from snaploom.storage import layout


def output_dataset(output: OutputDataset) -> DatasetName:
    """The dataset of an output: the folder of its files, or the place of its table."""
    folder = output.spec.output_folder
    is_table = folder.data_format is DataFormat.ICEBERG
    return place_dataset(folder.folder_uri + ("" if is_table else layout.DATA))
