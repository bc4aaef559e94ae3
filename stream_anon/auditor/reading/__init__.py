"""The auditor's own readers of policies, files, lines and topics; they share no code with the writers."""
