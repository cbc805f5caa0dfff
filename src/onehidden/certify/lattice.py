"""Whether distinct rows hold the kinks of piecewise linear units: on a lattice these can lie elsewhere.

Where a unit is off on the rows of one facet only (or on one row), it acts on all others as a linear function:
the units absorb a linear part on the samples, other units can be reversed against it, and kinks move, though
the Jacobian at the network found has full rank. Two counts on the distinct rows tell such networks from
determined ones: the rank of the Jacobian with a linear part added, and the rows on which two units differ.
Rows on a kink are left out: a descent along a free direction ends where a row touches a kink, and there J has
full rank.

Evidence, not proof: all k patterns that hyperplanes cut were tried against random teachers of full rank
(ReLU, 1 to 3 units; integer lines, grids, corners of cubes). With a linear part absorbed another network fits
exactly for 69 % of 459 teachers on lines and 6 % of 214 on grids; with none absorbed for 4 of 5918, all with
two units apart on fewer than d + 3 rows; with both counts for 0 of 4371.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onehidden.certify.local_fit import LocalFit, local_fit
from onehidden.certify.replicates import different
from onehidden.certify.units import ActivePatterns, on_kink, pattern_sums, rows_needed
from onehidden.checks import About, Check, at_least
from onehidden.fit.samples import Samples


def lattice_checks(local: LocalFit, most_parameters: int = 1000) -> list[Check]:
    """Fewest distinct rows that tell two units apart, or less the directions that a linear part adds in vain.

    In these the units imitate <v, x> on all rows, or move without a change on any row. Asked of rows in
    memory of which a column has half as many values or fewer; for more than ``most_parameters`` only where
    whole rows stand at least twice on average.
    """
    problem, rows, network = local.problem, local.problem.rows, local.network
    kinked = network.activation.kinked and network.activation.homogeneity
    if not isinstance(rows, Samples) or not kinked:
        return []
    parts = [rows.X.T, *([column] for column in rows.X.T if problem.form.size <= most_parameters)]
    if all(different(columns) > len(rows) / 2 for columns in parts):
        return []
    t = rows.X @ network.weights.T + network.bias
    clear = np.all(np.abs(t) > on_kink(t), axis=1)
    first = np.unique(rows.X, axis=0, return_index=True)[1]
    some, value = problem.take(first[clear[first]]), 0
    if some.n:
        bend = local_fit(network, replace(some, form=replace(problem.form, skip=True))).bend
        inner = some.fit_coordinates.inward(network)
        closest = ActivePatterns.of(inner, *some.sums(pattern_sums, inner)).closest()[0]
        value = bend.rank - bend.freedom or closest
    advice = (
        "fewest distinct rows that tell two units apart, or less the directions in which units imitate a "
        "linear function; below the bound kinks can lie elsewhere in the gaps of a lattice"
    )
    needed = rows_needed(problem.form.inputs + problem.form.bias - 1)
    return [at_least("kinks held by distinct rows", value, needed, advice, About.UNITS)]
