"""Previews, comparisons, risk, and proposals of policies: what a policy would do before anything runs."""
