"""OpenSearch as a place of skipping indexes, in Flint's form; needs the extra `opensearch`."""
