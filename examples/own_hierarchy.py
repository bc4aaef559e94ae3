"""A kind of hierarchy of one's own: addresses that become networks, and the laws it must keep to."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv4Network
from typing import Literal

import numpy as np
from pydantic import Field
from visits import policy, visits

import stream_anon
from stream_anon.core.hierarchy import HIERARCHIES, CostTable, HierarchySettings, Kind
from stream_anon.core.hierarchy.base import MISSING_LABEL, UNKNOWN_LABEL, encode_each
from stream_anon.core.hierarchy.ladder import ladder_loss, shared
from stream_anon.errors import Problem
from stream_anon.testing import check_hierarchy


class Networks:
    """Addresses as positions; a stretch is published as the smallest declared network around it."""

    top = 2**32  # positions from here on are leaves of what is missing or unknown

    def __init__(self, prefixes, leaves):
        self._prefixes, self._extra = tuple(prefixes), leaves
        self._units = tuple(2 ** (32 - prefix) for prefix in prefixes)
        self._levels = tuple(i / len(prefixes) for i in range(len(prefixes)))

    def _position(self, value):
        try:
            return int(IPv4Address(value))
        except AddressValueError:
            return None

    def encode(self, values):
        return encode_each(values, self._position, self._extra, self.top)

    def loss(self, low, high):
        return ladder_loss(np.asarray(low), np.asarray(high), self._units, self._levels, self.top)

    def label(self, low, high):
        if high >= self.top:
            return "*" if low != high else self._extra.label(low, self.top)
        level = shared(self._units, low, high)
        if level == len(self._units):
            return "*"
        return str(IPv4Network((int(low) // self._units[level] * self._units[level], self._prefixes[level])))

    def contains(self, label, value):
        if label == "*":
            return True
        if value is None or self._position(value) is None:
            return label == (MISSING_LABEL if value is None else UNKNOWN_LABEL)
        return "/" in label and IPv4Address(value) in IPv4Network(label)

    def cost_table(self):
        least = (*self._levels, 1.0)[1]  # what two different addresses cost at the least
        return CostTable(Kind.LADDER, units=self._units, levels=self._levels, highest=self.top, least=least)

    def signature(self):
        return f"networks {self._prefixes} {self._extra}"


class NetworkHierarchy(HierarchySettings):
    """IPv4 addresses become networks of ever shorter prefixes."""

    kind: Literal["networks"]
    prefixes: list[int] = Field(default=[32, 24, 16], min_length=1)

    def rules(self, type_):
        if sorted(set(self.prefixes), reverse=True) != self.prefixes:
            yield Problem(("prefixes",), "not-decreasing", "prefixes go from long to short", "[32, 24, 16]")

    def build(self, folder, leaves):
        return Networks(self.prefixes, leaves)


known = ["10.0.0.1", "10.0.0.2", "10.0.7.1", "10.9.0.1", "192.168.1.1"]
check_hierarchy(NetworkHierarchy(kind="networks"), known, unknown=["10.0.0", "localhost"])

HIERARCHIES.add(NetworkHierarchy)  # for this program; installed: an entry point of the group stream_anon.hierarchies
records = [visit | {"address": f"10.{i % 2}.{i % 5}.{i % 9}"} for i, visit in enumerate(visits(200))]
attributes = {
    "patient": {"role": "identifier"},
    "address": {"role": "quasi_identifier", "type": "category", "hierarchy": {"kind": "networks"}},
    "diagnosis": {"role": "sensitive"},
}
result = stream_anon.anonymize(records, policy(attributes=attributes))
print(f"{result.published} rows; the first was published as {result.table[0]['address']}")
assert any("/24" in record["address"] for record in result.table)
