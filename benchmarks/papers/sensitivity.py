"""Personalized (l, c)-anonymity: what the order by sensitivity does against a similarity attack, equal l, c = .5.

A class is open to it if all its values are among the more sensitive half: whoever finds a person in it knows that they
have one of those, though not which. Sensitivities as declared, none at all, and reversed: that, too, brings sensitive
and harmless values together, but begins with the harmless ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from experiment import SENSITIVE, Experiment, start
from personal import QUASI, SENSITIVITIES

from stream_anon.batch import partition
from stream_anon.core.loss.personalized import total_loss

MORE = {name for name, (sensitivity, _) in SENSITIVITIES.items() if sensitivity >= 0.6}


def point(experiment: Experiment, order: str, l: int) -> dict[str, Any]:  # noqa: E741
    """Count records in classes of sensitive values alone, with the loss and what was suppressed."""
    sign = {"declared": lambda s: s, "none": lambda s: 0.0, "reversed": lambda s: 1 - s}[order]
    values = {name: {"sensitivity": sign(s), "l": l} for name, (s, _) in SENSITIVITIES.items()}
    model = {"model": "lc_anonymity", "attribute": SENSITIVE, "l": l, "c": 0.5, "values": values}
    schema = experiment.schema(QUASI, [model])
    rows = experiment.encoded(schema)
    found = partition("lc-clustering", rows, schema)
    grave = np.isin([row[SENSITIVE] for row in experiment.rows], list(MORE))
    hierarchies = [column.hierarchy for column in schema.quasi]
    measured = {
        "l": l,
        "order": order,
        "open_to_similarity": sum(len(index) for index in found.classes if grave[index].all()) / len(rows),
        "suppressed": len(found.suppressed),
        "loss_per_row": round(total_loss(rows.qi, found.classes, hierarchies) / len(rows), 4),
    }
    experiment.points.append(measured)
    print(measured, flush=True)
    return measured


def main() -> None:
    """Measure, and check the direction."""
    experiment = start("sensitivity", __doc__)
    for l in (2, 3, 5):  # noqa: E741
        declared, none, _ = (point(experiment, order, l) for order in ("declared", "none", "reversed"))
        fewer = declared["open_to_similarity"] <= none["open_to_similarity"]
        experiment.claim(
            f"l = {l}: sensitivities leave no more records open to a similarity attack than none do", fewer
        )
    experiment.finish()


if __name__ == "__main__":
    main()
