"""Anonymize a stream of personal records: groups of at least k people, within a delay bound, each record once."""

__version__ = "0.1.0"
