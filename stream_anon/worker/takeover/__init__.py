"""Following the consumer group, and taking up what others left: ledgers restored and held against what is known."""
