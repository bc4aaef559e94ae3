"""What a policy would do, before anything runs: previews, comparisons, risk, and proposals of policies."""
