"""What the experiments on personalized (l, c)-anonymity share: sensitivities, and plain l-diversity to compare with."""

from __future__ import annotations

from typing import Any

import numpy as np
from experiment import SENSITIVE, Experiment, shares_above

from stream_anon.batch import partition
from stream_anon.batch.l_incognito import LIncognito, LIncognitoSettings
from stream_anon.core.loss.personalized import total_loss
from stream_anon.core.privacy import LCAnonymity

QUASI = ("age", "workclass", "education", "marital-status", "race", "sex")

SENSITIVITIES = {
    "Armed-Forces": (0.95, 10), "Exec-managerial": (0.90, 10), "Prof-specialty": (0.85, 9),
    "Protective-serv": (0.80, 8), "Priv-house-serv": (0.80, 8), "Transport-moving": (0.70, 8),
    "Tech-support": (0.65, 7), "Farming-fishing": (0.60, 7), "Machine-op-inspct": (0.50, 6),
    "Handlers-cleaners": (0.40, 5), "Craft-repair": (0.30, 4), "Adm-clerical": (0.20, 3),
    "Other-service": (0.10, 2), "Sales": (0.10, 2),
}  # fmt: skip


def values() -> dict[str, Any]:
    """Return the sensitivity and the l of each occupation."""
    return {name: {"sensitivity": s, "l": l} for name, (s, l) in SENSITIVITIES.items()}  # noqa: E741


def compare(experiment: Experiment, l: int, c: float, personal: bool = False) -> dict[str, Any]:  # noqa: E741
    """(l, c)-clustering beside plain l-diversity by full-domain recoding: rows open to a skew attack, and losses."""
    model = {"model": "lc_anonymity", "attribute": SENSITIVE, "l": l, "c": c}
    schema = experiment.schema(QUASI, [model | ({"values": values()} if personal else {})])
    rows = experiment.encoded(schema)
    hierarchies = [column.hierarchy for column in schema.quasi]
    ours = partition("lc-clustering", rows, schema)
    [wanted] = [m for m in schema.requirements.models if isinstance(m, LCAnonymity)]
    broken = sum(wanted.shortfall(rows.take(index)) > 0 for index in ours.classes)
    plain = experiment.schema(QUASI, [{"model": "l_diversity", "attribute": SENSITIVE, "l": l}])
    theirs = LIncognito(LIncognitoSettings())(rows, plain)
    secret = rows.sensitive[:, 0]
    everything = total_loss(rows.qi, [np.arange(len(rows))], hierarchies) / len(rows)
    point = {
        "l": l,
        "c": c,
        "broken_classes": int(broken),
        "suppressed": len(ours.suppressed),
        "exposed": shares_above(ours.classes, secret, c),
        "exposed_plain": shares_above(theirs, secret, c),
        "loss": total_loss(rows.qi, ours.classes, hierarchies) + everything * len(ours.suppressed),
        "loss_plain": total_loss(rows.qi, theirs, hierarchies),
    }
    experiment.points.append(point)
    print(point, flush=True)
    return point
