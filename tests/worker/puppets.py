"""Workers that stop before every operation on the broker, so that a test decides what happens next, and to whom."""

from __future__ import annotations

import threading
from collections.abc import Callable
from zlib import crc32

from fifo import Core
from hasty import hasten

from stream_anon.kafka.transport import TransportError
from stream_anon.observe.observer import Observer
from stream_anon.testing.memory import MemoryTransport
from stream_anon.testing.memory_log import MemoryBroker
from stream_anon.worker.loop import Worker
from stream_anon.worker.settings import WorkerSettings


class Killed(BaseException):
    """The process ends here: nothing is cleaned up."""


class Strict(Observer):
    """Nothing may be withdrawn or quarantined where nothing was lost or changed."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def withdrawn(self, reason: str, groups: int, records: int) -> None:
        self.failures.append(f"withdrawn: {reason}")

    def assigned(self, partitions: int, quarantined: dict[int, str]) -> None:
        self.failures += [f"quarantined: {code}" for code in quarantined.values()]


class Puppet:
    """The real loop in a thread that runs only between two operations, and only when told to."""

    def __init__(
        self,
        broker: MemoryBroker,
        name: str,
        slot: str,
        settings: WorkerSettings,
        clock: Callable[[], float],
        core: Core,
        announce: bool = True,
    ) -> None:
        self.name, self.slot, self.observer = name, slot, Strict()
        writer = crc32(name.encode())
        self.transport = MemoryTransport(broker, name, slot, before=self._before, eager=bool(writer % 2))
        self.worker = Worker(self.transport, core, settings, self.observer, clock=clock, writer=writer)
        if not announce:
            hasten(self.worker)
        self.alive, self.at, self.failure = True, "start", ""
        self._kill = False
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._stopped.acquire()

    def advance(self) -> None:
        """Do the operation it stands before, and go on to the next."""
        if self.alive:
            self._go.release()
            self._stopped.acquire()

    def kill(self) -> None:
        """kill -9: an open transaction stays open, the group is not told."""
        self._kill = True
        self.advance()
        self._thread.join()

    def _before(self, operation: str) -> None:
        self.at = operation
        self._stopped.release()
        self._go.acquire()
        if self._kill:
            raise Killed

    def _run(self) -> None:
        try:
            while True:
                self.worker.step()
        except (Killed, TransportError):
            pass  # killed, or fenced: a process that ends
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"
        self.alive = False
        self._stopped.release()
