"""What a kernel says, compiled or not."""

from __future__ import annotations

from stream_anon.core.kernels import Prices, price


def kernel(prices: Prices, q: int, low: int, high: int) -> float:
    """The kernel's price of a stretch, after making sure that it is the same whether compiled or not."""
    plain = getattr(price, "py_func", price)(prices.facts, prices.values, q, low, high)
    assert price(prices.facts, prices.values, q, low, high) == plain
    return float(plain)
