"""What a kernel says, compiled or not."""

from __future__ import annotations

import numpy as np

from stream_anon.core.kernels import Prices, cell_prices, price


def kernel(prices: Prices, q: int, low: int, high: int) -> float:
    """The kernel's price of a stretch, after making sure that it is the same whether compiled or not."""
    plain = getattr(price, "py_func", price)(prices.facts, prices.values, q, low, high)
    ends = np.zeros((2, 1, len(prices.facts)), dtype=np.int64)
    ends[:, 0, q] = low, high
    assert cell_prices(prices.facts, prices.values, *ends)[0, q] == plain
    return float(plain)
