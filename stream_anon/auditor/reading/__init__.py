"""The auditor's own readers: policies, files, lines and topics, without a line shared with what made them."""
