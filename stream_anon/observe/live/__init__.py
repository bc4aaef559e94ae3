"""The state of a run as it is now: one object for the live page, its JSON, and the lines of a terminal."""
