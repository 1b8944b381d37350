"""Pure builders of ConfigMaps, labels and owner references of child objects.

Applications are built in `submitters`; requests are made in `apply`.
"""
