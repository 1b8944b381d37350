"""The models of the API: declarations, status, report and findings."""
