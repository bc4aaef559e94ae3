"""The core: rows as columns, the cost of generalizing, and whether a group may be published. No input, no output."""
