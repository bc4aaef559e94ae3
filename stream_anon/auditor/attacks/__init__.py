"""Attacks on published records, one per file: what somebody with background knowledge can conclude from them."""
