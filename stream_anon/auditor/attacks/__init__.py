"""Attacks on published records, one per file: what somebody who knows more than the output can conclude."""
