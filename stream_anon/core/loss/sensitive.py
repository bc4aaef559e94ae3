"""The cost of publishing a sensitive value as one of its ancestors."""

from __future__ import annotations

from stream_anon.core.hierarchy import Tree


def sensitive_loss(tree: Tree, node: int) -> float:
    """Return the share of the other leaves that the value could be: 0 for a leaf, 1 for the root.

    >>> from stream_anon.core.hierarchy import branch
    >>> tree = Tree(branch("any", {"stomach": ["ulcer", "gastritis"], "lung": ["flu", "bronchitis", "edema"]}))
    >>> [sensitive_loss(tree, tree.labels.index(name)) for name in ("flu", "stomach", "any")]
    [0.0, 0.25, 1.0]
    """
    leaves = int(tree.last[node] - tree.first[node] + 1)
    return (leaves - 1) / max(tree.size - 1, 1)
