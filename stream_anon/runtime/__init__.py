"""The Kafka worker: the loop, its ledgers, and the parts it is made of."""
