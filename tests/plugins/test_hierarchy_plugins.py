"""A kind of hierarchy of another distribution works wherever one of this package does."""

from __future__ import annotations

import json
from pathlib import Path

from distributions import PIPE, commands, install, run

from stream_anon.auditor.scales import known_scales
from stream_anon.core.hierarchy import HIERARCHIES

HIERARCHY = '''
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from typing import Literal

import numpy as np
from pydantic import Field

from stream_anon.core.hierarchy import CostTable, HierarchySettings, Kind, Leaves
from stream_anon.core.hierarchy.base import encode_each
from stream_anon.core.hierarchy.ladder import ladder_loss, shared
from stream_anon.errors import Problem


class Addresses:
    """Addresses that become networks."""

    top = 2**32

    def __init__(self, prefixes, leaves):
        self._prefixes, self._extra = prefixes, leaves
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
        return label == "*" or (value is not None and IPv4Address(value) in IPv4Network(label))

    def cost_table(self):
        least = (*self._levels, 1.0)[1]
        return CostTable(Kind.LADDER, units=self._units, levels=self._levels, highest=self.top, least=least)

    def signature(self):
        return f"ipv4 {self._prefixes} {self._extra}"


class AddressHierarchy(HierarchySettings):
    """IPv4 addresses become networks of ever shorter prefixes."""

    kind: Literal["ipv4"]
    prefixes: list[int] = Field(min_length=1)

    def build(self, folder, leaves):
        return Addresses(self.prefixes, leaves)

    def rules(self, type_):
        if sorted(set(self.prefixes), reverse=True) != self.prefixes:
            yield Problem(("prefixes",), "not-decreasing", "prefixes go from long to short", "[32, 24, 16]")
'''
SCALE = '''
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError

from stream_anon.auditor.scales import Reading, Scale
from stream_anon.auditor.scales.base import NOWHERE, OUTSIDE, read_plain


class AddressScale(Scale):
    """Networks of the declared prefixes."""

    kind = "ipv4"

    def __init__(self, prefixes, absent):
        self._prefixes, self._absent = prefixes, absent

    @classmethod
    def of(cls, attribute, absent, folder):
        return cls(attribute["hierarchy"]["prefixes"], absent)

    def read(self, label):
        plain = read_plain(label, self._absent)
        if plain is not None:
            return plain
        try:
            network = IPv4Network(label)
        except (AddressValueError, NetmaskValueError, ValueError):
            return OUTSIDE
        if network.prefixlen not in self._prefixes:
            return OUTSIDE
        loss = self._prefixes.index(network.prefixlen) / len(self._prefixes)
        return Reading(float(int(network[0])), float(int(network[-1])), loss, loss)

    def place(self, value):
        try:
            return float(int(IPv4Address(value)))
        except AddressValueError:
            return NOWHERE
'''
POLICY = """
version: 1
name: visits
attributes:
  address: {role: quasi_identifier, type: category, hierarchy: {kind: ipv4, prefixes: [32, 24, 16]}}
  page: {role: sensitive}
privacy:
  - {model: k_anonymity, k: 4}
"""
AUDIT = ["audit", "out.jsonl", "-p", "policy.yaml", "--raw", "in.jsonl", "--json"]


def prepare(folder: Path) -> list[str]:
    install(folder, "addresses", HIERARCHY, "[stream_anon.hierarchies]\nipv4 = addresses:AddressHierarchy\n")
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (folder / "odd.yaml").write_text(POLICY.replace("[32, 24, 16]", "[16, 24]"), encoding="utf-8")
    rows = [{"address": f"10.{i % 3}.{i % 7}.{i % 11}", "page": "abc"[i % 3]} for i in range(200)]
    lines = [json.dumps(row) for row in rows]
    (folder / "in.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lines


def test_a_hierarchy_of_another_distribution(tmp_path: Path) -> None:
    lines = prepare(tmp_path)
    anonymize = ["anonymize", "-p", "policy.yaml", "in.jsonl", "-o", "out.jsonl"]
    schema, check, made, audit = commands(tmp_path, ["schema"], ["check", "odd.yaml"], anonymize, AUDIT)
    assert [schema[0], check[0], made[0], audit[0]] == [0, 3, 0, 0]
    assert "ipv4" in schema[1]
    assert "odd.yaml:5" in check[2]  # its own rules, with their place
    assert "not-decreasing" in check[2]
    published = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(published) == 200
    assert any(record["address"].endswith("/24") for record in published)
    notes = json.loads(audit[1])["notes"]
    assert any(note.startswith("not judged: address: its labels") for note in notes), notes
    piped = run(tmp_path, PIPE, text="\n".join(lines) + "\n")
    assert piped.returncode == 0, piped.stderr
    assert len(piped.stdout.splitlines()) == 200


def test_a_scale_of_another_distribution_judges(tmp_path: Path) -> None:
    prepare(tmp_path)
    install(tmp_path, "scaling", SCALE, "[stream_anon.auditor_scales]\nipv4 = scaling:AddressScale\n")
    anonymize = ["anonymize", "-p", "policy.yaml", "in.jsonl", "-o", "out.jsonl"]
    _, (code, told, _) = commands(tmp_path, anonymize, AUDIT)
    result = json.loads(told)
    assert (code, result["notes"], result["raw"]["matched"]) == (0, [], 200)
    out = tmp_path / "out.jsonl"
    out.write_text(out.read_text(encoding="utf-8").replace("/24", "/25"), encoding="utf-8")
    [(code, told, _)] = commands(tmp_path, AUDIT)
    assert code == 4
    assert "outside-hierarchy" in [finding["code"] for finding in json.loads(told)["findings"]]


def test_the_auditor_knows_every_kind_and_no_other() -> None:
    assert set(known_scales()) == set(HIERARCHIES.words)
    assert len(known_scales()) >= 7
