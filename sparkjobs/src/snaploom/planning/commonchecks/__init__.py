"""What checks of several kinds use, those of `validation` and of `sources` alike."""
