"""The meaning of published labels, per kind of hierarchy, by the auditor's own arithmetic."""
