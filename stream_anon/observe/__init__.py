"""Logs, metrics and status of a run; none of them reveals anything about the people in it."""
