"""The webhook's certificate: what it should be, how it is made, and who keeps it fresh."""
