"""Batch algorithms: partitions of a whole table."""
