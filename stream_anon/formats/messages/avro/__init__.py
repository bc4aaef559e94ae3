"""Messages in Avro: read by their schema, written with that of the policy."""
