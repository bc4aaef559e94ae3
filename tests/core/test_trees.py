"""Trees against the definition: the loss of a box is that of the lowest common ancestor."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kernels import kernel

from stream_anon.core.hierarchy import (
    Kind,
    Leaves,
    Node,
    Tree,
    branch,
)
from stream_anon.core.hierarchy import tree as tree_module
from stream_anon.core.kernels import pack
from stream_anon.core.loss.cail import cluster_loss


def shapes() -> st.SearchStrategy[Any]:
    """Nested lists: an empty one is a leaf."""
    return st.recursive(st.just([]), lambda below: st.lists(below, min_size=1, max_size=5), max_leaves=25)


def named(shape: list[Any], label: str = "r") -> Node:
    return Node(label, tuple(named(below, f"{label}.{i}") for i, below in enumerate(shape)))


def paths(node: Node, above: tuple[Node, ...] = ()) -> list[tuple[Node, ...]]:
    """The way from the root to each leaf."""
    way = (*above, node)
    return [path for child in node.children for path in paths(child, way)] if node.children else [way]


def nodes_below(node: Node) -> int:
    return sum(1 + nodes_below(child) for child in node.children)


def lowest_common_ancestor(ways: Sequence[tuple[Node, ...]]) -> Node:
    common = [step[0] for step in zip(*ways, strict=False) if all(node is step[0] for node in step)]
    return common[-1]


def definition(root: Node, node: Node, counting: str) -> float:
    if not node.children:
        return 0.0
    leaves = len(paths(node))
    return {
        "ncp": leaves / len(paths(root)),
        "leaves": leaves,
        "descendants": nodes_below(node),
        "subtree": nodes_below(node) + 1,
    }[counting]


@pytest.mark.parametrize("limit", [0, 512], ids=["sparse maxima", "square table"])
@given(shape=shapes(), data=st.data(), counting=st.sampled_from(["ncp", "leaves", "descendants", "subtree"]))
@settings(max_examples=150, deadline=None)
def test_box_loss_is_the_loss_of_the_lowest_common_ancestor(
    limit: int, shape: list[Any], data: st.DataObject, counting: str
) -> None:
    assume(shape)
    root = named(shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_module, "TABLE_LIMIT", limit)
        tree = Tree(root, counting=counting)
    ways = {way[-1].label: way for way in paths(root)}
    values = data.draw(st.lists(st.sampled_from(sorted(ways)), min_size=1, max_size=6))
    ancestor = lowest_common_ancestor([ways[value] for value in values])
    codes, trouble = tree.encode(values)
    assert trouble is None
    low, high = int(codes.min()), int(codes.max())
    expected = definition(root, ancestor, counting)
    assert tree.loss(codes.min(), codes.max()) == expected
    assert cluster_loss(codes[:, None], [tree]) == expected
    prices = pack([tree], [1.0])
    assert tree.cost_table().kind is (Kind.TABLE if limit else Kind.PEAKS)
    assert kernel(prices, 0, low, high) == expected
    label = tree.label(low, high)
    assert {leaf for leaf in ways if tree.contains(label, leaf)} == {way[-1].label for way in paths(ancestor)}


@given(shape=shapes())
@settings(max_examples=60, deadline=None)
def test_both_structures_agree_on_every_stretch(shape: list[Any]) -> None:
    assume(shape)
    small = Tree(named(shape))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_module, "TABLE_LIMIT", 0)
        large = Tree(named(shape))
    low, high = np.triu_indices(small.size)
    np.testing.assert_array_equal(small.loss(low, high), large.loss(low, high))


def test_a_tree_of_ten_thousand_leaves() -> None:
    count = 10_000
    root = branch(
        "*",
        {f"{i:02d}**": {f"{i:02d}{j}*": [f"{i:02d}{j}{k}" for k in range(10)] for j in range(10)} for i in range(100)},
    )
    begin = time.process_time()
    tree = Tree(root)
    rng = np.random.default_rng(1)
    ends = np.sort(rng.integers(0, count, (20_000, 2)), axis=1)
    losses = tree.loss(ends[:, 0], ends[:, 1])
    prices = pack([tree], [1.0])
    spent = time.process_time() - begin
    assert spent < 5, "building and pricing a large tree must take a moment, not minutes"
    assert tree.size == count
    assert tree.cost_table().kind is Kind.PEAKS
    arrays = [value for value in vars(tree).values() if isinstance(value, np.ndarray)]
    assert sum(array.nbytes for array in [*arrays, *prices]) < 100 * 8 * count, "n log n floats, not n * n"
    expected = [
        0.0 if a == b else 0.001 if a // 10 == b // 10 else 0.01 if a // 100 == b // 100 else 1.0 for a, b in ends
    ]
    assert losses.tolist() == expected
    assert [kernel(prices, 0, a, b) for a, b in ends[:200].tolist()] == expected[:200]


def test_a_large_flat_tree() -> None:
    tree = Tree(Node("*", tuple(Node(str(i)) for i in range(3_000))))
    assert tree.loss(np.array([5, 5, 0]), np.array([5, 6, 2_999])).tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("absent", [Leaves(), Leaves(missing=True, unknown=True)])
def test_a_tree_of_one_leaf(absent: Leaves) -> None:
    tree = Tree(Node("only"), absent)
    assert tree.encode(["only"])[0].tolist() == [0]
    assert tree.label(0, 0) == "only"
    assert tree.loss(np.array([0]), np.array([0])).tolist() == [0.0]
