"""The statistical levels of all checks, in one table: value, check, and what was measured of each.

To change how strict a check is, change its row. Size is the share of right answers that a check refuses,
power the share of wrong ones. The benchmarks ``sizes`` and ``verdict`` measure both: run them after a
change, and write what they find into the row.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Level:
    """One statistical level.

    Attributes
    ----------
    value : float
        The bound.
    check : str
        The checks that it decides, as named in reports; in brackets what it decides that is no check.
    measure : str
        What is compared with it: a p-value, standard errors, n log(loss), a share.
    guards : str
        The error that the bound makes rare.
    measured : str
        Size and power as far as they were measured.
    """

    value: float
    check: str
    measure: str
    guards: str
    measured: str = ""


# fmt: off
FIT = Level(0.01, "fit", "p-value",
    "a network that misses nothing is refused by the check 'fit'",
    "true size .76 to 1.1 of the nominal one for equal, unequal and t3 noise, n = 60 to 1000")
LACK_OF_FIT = Level(0.01, "lack of fit", "p-value",
    "a network that goes through the means of repeated rows is refused",
    "exact for normal noise; the size for other noise is in ``benchmarks/results/sizes.md``")
LEFT_OVER = Level(0.05, "(share of var(y) left over)", "p-value",
    "a share of var(y) is reported as missed though nothing is missed")
DEPENDENCE = Level(0.01, "independent rows", "p-value",
    "independent rows are called dependent",
    "size .001 to .017, at .05 .01 to .067: five kinds of noise, rows mixed or sorted, n = 10 to 3000")
GROUPS = Level(0.01, "groups", "p-value",
    "independent noise is said to be shared by rows of a group; a note, errors by group hold either way")
EQUAL_VARIANCE = Level(0.05, "equal spread", "p-value",
    "of more than 1000 parameters robust standard errors replace classical ones though the noise is equal",
    "robust errors hold for equal noise, too, and are those of fewer parameters")
CLASSICAL_ERRORS = Level(0.001, "equal spread", "p-value",
    "an answer with errors='classical' is refused though the noise is equal")
DISPERSION = Level(0.01, "spread of y", "p-value",
    "the spread of y is called wrong for its family",
    "size at .05: Poisson .028 to .053, binomial .044 to .057, normal .047 to .053, gamma .026 to .046")
PILES = Level(0.001, "ends of y", "p-value",
    "a value that digits explain is called a floor, a ceiling or a filled gap",
    "twice as many rows as beside it are allowed: from 22 rows on where no other value repeats")
OTHER_LAW = Level(7.3, "link, scale of y, rival activation", "deviance over dispersion",
    "labels are said to flip that do not, y to follow another scale, or units another activation",
    "the .01 of the law of a deviance with two more rates, each at its bound; right activations in 1 of 139")
OTHER_MEAN = Level(0.2, "link", "share of the rows",
    "the bands of an answer hold only by the link that was assumed",
    "with ``LIKELIHOOD`` for a link as such, right links of 0/1 labels fail in 3 of 35 (a share of .1: 5)")
SKEWNESS = Level(0.01, "skewness", "p-value",
    "the mean is called wrong though only the noise is skewed",
    "size 0 to .013 for equal, unequal, t3 and skewed noise, n = 80 to 2000; power at n = 400: a floor "
    "under 20 % of the rows .30, log1p of counts .23")
LARGER_MODEL = Level(0.002, "(detectable share of one unit more)", "p-value",
    "one more unit is seen where there is none, by the F test whose power is reported")
LARGER_MODEL_POWER = Level(0.9, "(detectable share of one unit more)", "power",
    "a unit of the reported detectable share is overlooked")
SMALLER_MODEL = Level(0.01, "a smaller model", "p-value",
    "a unit that is not there is taken for one that is",
    "of 60 right models with three kinds of noise the likelihood left 1 to it")
NO_UNIT = Level(0.05, "(end of the search for one unit)", "p-value",
    "the search for one unit is cut short though there is a unit beyond a linear function")
LINEAR = Level(0.001, "linear function", "p-value",
    "a linear function, or nothing at all, is taken for a unit",
    "by the likelihood of 0/1 labels without a slope 3 of 720; with one, what a unit gains has its .99 at "
    "5.5 (much slope) to 11.4 (just a slope), n = 300 to 3000, against 10.8")
RIVAL = Level(0.01, "other minimum", "p-value of twice a difference of log likelihoods",
    "the true network is ruled out as a rival of a wrong one; decides orientations and activations, too",
    "ruled out: 2 of 63 true minima where a wrong one was lower (Vuong's test: 9), .37 of wrong ones (.31)")
LIKELIHOOD = Level(6.0, "activation, link", "n log(loss)",
    "two answers of the same size are distinguished by chance",
    "a likelihood ratio of e^3; two standard deviations of the difference between two good minima")
ORIENTATION_SEARCH = Level(30.0, "orientation", "chi-square above the best",
    "an orientation that fits is not tried")
FACING = Level(3.0, "orientation beside a linear part", "standard errors",
    "the errors of a linear part do not cover the other orientation of a unit that noise may reverse",
    "intervals of a linear part cover .976 at 300 rows, where 11 of 241 answers have a unit reversed")
OUTPUT = Level(2.0, "(unit told from none)", "standard errors",
    "the output of a unit is not distinguished from zero; with fewer its size is not known to a half")
SAME_UNIT = Level(8.0, "(units that two fits share)", "times the shift by noise, squared",
    "two fits of one unit are called two units", "two fits differ by 2 on average")
GRADIENT = Level(0.05, "gradient", "standard errors",
    "a finished descent is called unfinished",
    "at a kink the gradient jumps by whole rows: there the bound is 20 rows of n, if that is more")
SAMPLES = Level(4.0, "samples per parameter", "numbers per parameter, with noise",
    "a sample that can carry an answer is refused; fewer do where rows repeat or would show another unit")
REPEATED_ROWS = Level(0.02, "repeated rows", "share of rows",
    "rows that agree by chance, in few digits, are called copies",
    "of few rows 1 / sqrt(2 (n - p)) where that is more: errors are known no better")
FRESH_QUERIES = Level(1e-8, "fresh queries", "share of std(y), of a black box",
    "the right network is refused because its answers are rounded")
# fmt: on

TABLE = {name: level for name, level in list(vars().items()) if isinstance(level, Level)}
