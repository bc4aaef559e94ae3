"""Replay a recording, or a topic's past, through an algorithm, exactly once and resumably."""
