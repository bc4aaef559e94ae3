"""The Kafka worker: the loop, who owns which partition, what a transaction holds, and how a run is taken up again."""
