"""The core: rows as columns, what generalizing costs, and whether a group may be published. No input, no output."""
