"""The auditor: verifies published records with a reader, a policy reader and arithmetic of its own.

Nothing here may import the engine, the gate or the policy's models: a mistake in them must not be repeated here.
"""
