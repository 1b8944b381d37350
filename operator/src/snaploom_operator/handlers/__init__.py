"""Handlers of kopf: start and end of a process, watch events, and reviews.

Nothing else imports kopf. Handlers are a few lines; what they call knows nothing of kopf.
"""
