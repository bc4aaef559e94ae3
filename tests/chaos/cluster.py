"""Three Kafka nodes on this machine as one cluster, each broker and controller, to be killed one by one."""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
from base64 import urlsafe_b64encode
from pathlib import Path

from stream_anon.kafka.local_broker.broker import LocalBroker, free_port

NODES = 3


class Node(LocalBroker):
    """One node of a cluster; its settings replace those of a broker that is alone."""

    def __init__(self, number: int, controllers: list[int], cluster: str, changes: dict[str, str]) -> None:
        self._number, self._controllers, self._cluster, self._changes = number, controllers, cluster, changes
        super().__init__(Path(tempfile.mkdtemp(prefix="stream-anon-node-")))

    def _write_properties(self) -> None:
        super()._write_properties()
        file = self.folder / "server.properties"
        own = self._controllers[self._number]
        text = re.sub(r"CONTROLLER://127.0.0.1:\d+", f"CONTROLLER://127.0.0.1:{own}", file.read_text())
        voters = ",".join(f"{node + 1}@127.0.0.1:{port}" for node, port in enumerate(self._controllers))
        settings = {"node.id": str(self._number + 1), "controller.quorum.voters": voters, **self._changes}
        kept = [line for line in text.splitlines() if line.partition("=")[0] not in settings]
        file.write_text("\n".join(kept + [f"{name}={value}" for name, value in settings.items()]) + "\n")

    def _new_cluster_id(self) -> str:
        return self._cluster


class Cluster:
    """The nodes of a cluster. With `unclean`, a copy that was left behind may become the leader: then data are lost.

    Else every partition has three copies, of which two must have a record.
    """

    def __init__(self, *, unclean: bool = False) -> None:
        self.replication = 2 if unclean else 3
        least = "1" if unclean else "2"
        changes = {
            "offsets.topic.replication.factor": str(self.replication),
            "transaction.state.log.replication.factor": "3",
            "transaction.state.log.min.isr": "2",
            "min.insync.replicas": least,
            "unclean.leader.election.enable": str(unclean).lower(),
            "replica.lag.time.max.ms": "3000",
            "broker.session.timeout.ms": "4000",
            "broker.heartbeat.interval.ms": "1000",
        }
        cluster = urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode().replace("-", "A")
        controllers = [free_port() for _ in range(NODES)]
        self.nodes = [Node(number, controllers, cluster, changes) for number in range(NODES)]

    @property
    def bootstrap(self) -> str:
        """The addresses of all nodes."""
        return ",".join(node.bootstrap for node in self.nodes)

    def start(self) -> Cluster:
        """Start all nodes and wait until each answers."""
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.await_ready()
        return self

    def remove(self) -> None:
        """End all nodes and delete their data."""
        for node in self.nodes:
            node.stop(kill=True)
            shutil.rmtree(node.folder, ignore_errors=True)
