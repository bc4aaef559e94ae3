"""A worker in this process, between two topics of a real broker that this program starts (extras kafka and broker)."""

from __future__ import annotations

import json
import threading
import time

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from visits import policy, visits

import stream_anon
from stream_anon.kafka.local_broker.broker import LocalBroker

with LocalBroker() as broker:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics([NewTopic("visits", 2, 1), NewTopic("anonymous", 2, 1)])
    admin.close()
    time.sleep(1)
    kafka = {"bootstrap": broker.bootstrap, "group": "example", "input": "visits", "output": "anonymous"}
    stop = threading.Event()
    settings = policy(kafka=kafka, stream={"max_delay": {"time": 2.0}})
    worker = threading.Thread(target=stream_anon.run_worker, args=[settings], kwargs={"stop": stop})
    worker.start()
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for visit in visits(300):
        producer.send("visits", json.dumps(visit).encode())
    producer.flush()
    reader = KafkaConsumer(
        "anonymous",
        bootstrap_servers=broker.bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        consumer_timeout_ms=20_000,
    )
    seen = []
    for message in reader:
        seen.append(json.loads(message.value))
        if len(seen) == 300:
            break
    stop.set()
    worker.join(60)
    reader.close()
    producer.close()
print(f"{len(seen)} records came out, in {len({record['_anon']['group'] for record in seen})} groups")
assert len(seen) == 300
assert all("patient" not in record for record in seen)
