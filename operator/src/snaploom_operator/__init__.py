"""The operator: watches the declarations, validates, plans, submits, follows and reports."""
