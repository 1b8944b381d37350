"""Checks shared by several kinds, those of `validation` and of `sources` alike."""
