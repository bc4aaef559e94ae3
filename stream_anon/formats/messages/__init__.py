"""What the bytes of a message mean: plain JSON, or Avro, Protobuf and JSON Schema behind a schema registry."""
