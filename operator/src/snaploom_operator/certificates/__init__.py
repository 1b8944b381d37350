"""Issuing and rotation of the webhook's certificate in its Secret.

The webhook loads the mounted files in `servers.tls`.
"""
