"""The validating admission webhook: server, cache of resources, and review of an object.

Validation rules are in `snaploom.planning.validation`; certificates are issued in `certificates`.
"""
