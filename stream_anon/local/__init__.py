"""Runs without a broker: a stream from a pipe, a whole table, a simulated clock."""
