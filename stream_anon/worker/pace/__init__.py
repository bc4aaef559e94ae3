"""How much is read and when it is committed: room in ledgers, schemas that are awaited, the tick of transactions."""
