"""Connections to servers that declarations and settings name; each address is checked first.

Knows sockets, TLS and HTTP; not what is asked of a server.
"""
