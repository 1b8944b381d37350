"""The session of Spark and what is set around it: settings, folders, loggers, failures told."""
