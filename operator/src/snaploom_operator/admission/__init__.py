"""The validating admission webhook: review of an object, and its HTTPS endpoint.

Validation rules are in `snaploom.validate`; certificates are in `cluster`.
"""
