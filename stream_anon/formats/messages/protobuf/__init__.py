"""Messages in Protobuf: read by their schema, written with that of the policy."""
