"""Parts for tests: a broker in memory, example data, and checks that any algorithm, model or hierarchy must pass."""
