"""The parts of a certificate about noise: columns and mechanism.

As in `record`, docstrings are the descriptions of the JSON Schema.
"""

import base64
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np

from dpframe.certificates.json_records import Limits, NotNegative, OneOf, Record, require
from dpframe.errors import QueryError
from dpframe.privacy.laws import LAWS, Law, law_named
from dpframe.privacy.selection import GEOMETRIC, SELECT
from dpframe.queries.query import Statistic
from dpframe.strategies import MECHANISMS, Moments
from dpframe.strategies.base import Ratio
from dpframe.strategies.structure import Structure

_MOST_PLACES = 2**53  # beyond, floats do not tell whole numbers apart


AtLeastOne: TypeAlias = Annotated[int, Limits(ge=1)]
AtLeastNone: TypeAlias = Annotated[int, Limits(ge=0)]
Text: TypeAlias = Annotated[str, Limits(min_length=1)]
BlockName: TypeAlias = Annotated[str, Limits(pattern="^-?[0-9]+$")]
Base64: TypeAlias = Annotated[
    str, Limits(pattern="^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$")
]


@dataclass(frozen=True)
class Packed(Record):
    """One number for each row.

    Parameters
    ----------
    float64
        The numbers in base64: 64-bit floats, little-endian.
    """

    float64: Base64

    @classmethod
    def of(cls, values: np.ndarray) -> "Packed":
        """Write an array."""
        return cls(base64.b64encode(np.asarray(values, "<f8").tobytes()).decode("ascii"))


def pack(values: np.ndarray | float) -> float | Packed:
    """Write a number as it is, and an array as text that `attrs` carries at no cost."""
    return float(values) if np.ndim(values) == 0 else Packed.of(np.asarray(values))


def unpack(packed: float | Packed) -> float | np.ndarray:
    """Read a number, or an array written by `pack`."""
    if isinstance(packed, Packed):
        return np.frombuffer(base64.b64decode(packed.float64), "<f8")
    return packed


def places_of(packed: Packed) -> np.ndarray:
    """Read positions: whole numbers from 0, no two the same.

    Raises
    ------
    ValueError
        If they are something else; they may come from a file.
    """
    numbers = np.asarray(unpack(packed))
    whole = bool((numbers == np.floor(numbers)).all()) and len(np.unique(numbers)) == len(numbers)
    if not whole or numbers.min(initial=0) < 0 or numbers.max(initial=0) > _MOST_PLACES:
        raise ValueError("positions are whole numbers from 0, each once")
    return numbers.astype(np.intp)


def packed_loadings(
    loadings: Mapping[int, float | np.ndarray], step: float
) -> dict[str, float | Packed]:
    """Write what the noise of the blocks does to something counted in steps, in its units."""
    return {str(block): pack(np.multiply(loading, step)) for block, loading in loadings.items()}


@dataclass(frozen=True)
class StructurePart(Record):
    """How the errors of all cells go together, from which every standard error follows.

    Let h_j be the integer contrast (1, ..., 1, -j, 0, ...) with j ones, j = 1, 2, ..., of squared
    length j (j + 1). What was measured is the sum over all cells, and contrasts; each has noise of
    its own, of variance tau^2 |h|^2 + rounding, with |h|^2 the product of the squared lengths of
    its contrasts. A cell is the sum of what was measured, each times its coefficient for that cell
    over its squared length. The noise of a weighted sum of cells then has as variance the sum of
    the squared weights of what was measured, times these variances.

    Parameters
    ----------
    kind
        "margins": one of several tables that agree; a layer has the contrasts along some columns of
        the index, of sums over all others. "tree": bins are the leaves of a tree, one for each
        group; a layer has the contrasts of the children of the nodes of a level.
    sizes
        For margins, the number of groups of each column of the index; for a tree, the number of
        children of a node, from the root down. Leaves beyond the last bin are empty.
    layers
        For margins, the columns of the index along which there are contrasts, by position: the
        tables released together share the layers of the columns that they share. For a tree, the
        level of the nodes, 1 for the children of the root; none for the sum over all bins.
    tau
        By measured block, the scale of the noise of each layer.
    rounding
        Variance that rounding the noise to integers adds.
    """

    kind: Literal["margins", "tree"]
    sizes: tuple[AtLeastOne, ...]
    layers: Annotated[tuple[tuple[AtLeastNone, ...], ...], Limits(min_length=1)]
    tau: Annotated[Mapping[BlockName, tuple[NotNegative, ...]], Limits(min_length=1)]
    rounding: NotNegative

    def __post_init__(self) -> None:
        lengths = {len(scales) for scales in self.tau.values()}
        require(lengths == {len(self.layers)}, "every layer has one scale per block")
        require(len(set(self.layers)) == len(self.layers), "a layer is named once")
        known = len(self.sizes) + (self.kind == "tree")
        places = [place for layer in self.layers for place in layer]
        require(all(place < known for place in places), "layers are along axes that there are")

    @property  # records say what their attributes are: nothing is kept beside
    def by_block(self) -> Mapping[str, Structure]:
        """What is known of the noise of each block."""
        return {
            block: Structure(self.kind, self.sizes, self.layers, scales, self.rounding)
            for block, scales in self.tau.items()
        }


@dataclass(frozen=True)
class RatioPart(Record):
    """What a mean was read off, so that it can be checked for bias, and denoised.

    Parameters
    ----------
    centered
        The noisy sum of values, each less the middle of the bounds, in the units of the column.
    rows
        The noisy number of rows, or the one that was given.
    of_centered
        By how much one standard deviation of each measured block moves the sum.
    of_rows
        By how much it moves the number of rows.
    """

    centered: float | Packed
    rows: float | Packed
    of_centered: Mapping[BlockName, float | Packed]
    of_rows: Mapping[BlockName, float | Packed]


def ratio_part(ratio: Ratio | None, step: float) -> RatioPart | None:
    """Write what a mean was read off, sums in its units; `None` for other outputs."""
    if ratio is None:
        return None
    return RatioPart(
        centered=pack(np.multiply(ratio.centered, step)),
        rows=pack(ratio.rows),
        of_centered=packed_loadings(ratio.of_centered, step),
        of_rows=packed_loadings(ratio.of_rows, 1.0),
    )


@dataclass(frozen=True)
class MomentsPart(Record):
    """What a variance or a standard deviation was read off, so that intervals can be made.

    Values count as y: how far they are off the middle of the bounds, in halves of their width.

    Parameters
    ----------
    rows
        The noisy number of rows.
    first
        The noisy sum of y.
    rest
        The noisy sum of y^2 - 1/2.
    of_rows
        By how much one standard deviation of each measured block moves the number of rows.
    of_first
        By how much it moves the sum of y.
    of_rest
        By how much it moves that of y^2 - 1/2.
    half_width
        Half the width of the bounds, in the units of the column.
    """

    rows: Packed
    first: Packed
    rest: Packed
    of_rows: Mapping[BlockName, float]
    of_first: Mapping[BlockName, float]
    of_rest: Mapping[BlockName, float]
    half_width: NotNegative

    @property
    def numbers(self) -> Moments:
        """The noisy numbers, by numbers of blocks."""
        rows, first, rest = (np.asarray(unpack(one)) for one in (self.rows, self.first, self.rest))
        moved = (self.of_rows, self.of_first, self.of_rest)
        of_rows, of_first, of_rest = ({int(block): by[block] for block in by} for by in moved)
        return Moments(rows, first, rest, of_rows, of_first, of_rest, self.half_width)


def moments_part(moments: Moments | None, step: float) -> MomentsPart | None:
    """Write what a variance was read off; `None` for other outputs."""
    if moments is None:
        return None
    rows, first, rest = map(Packed.of, (moments.rows, moments.first, moments.rest))
    moved = (moments.of_rows, moments.of_first, moments.of_rest)
    of_rows, of_first, of_rest = ({str(block): by[block] for block in by} for by in moved)
    half_width = moments.half_width * step
    return MomentsPart(rows, first, rest, of_rows, of_first, of_rest, half_width)


Bound: TypeAlias = int | float | str
MOST_DECIMALS = 15  # floats have no more
Decimals: TypeAlias = Annotated[int, Limits(ge=-MOST_DECIMALS, le=MOST_DECIMALS)]
Microseconds: TypeAlias = Annotated[int, Limits(ge=-(2**63), lt=2**63)]


@dataclass(frozen=True)
class TimesPart(Record):
    """How a column of durations or points in time is counted.

    Parameters
    ----------
    counted
        What the numbers of the column stand for.
    origin
        Where points in time are counted from, in microseconds since 1970; 0 for durations.
    bounds
        Bounds in microseconds, of durations or since 1970.
    zone
        The time zone, if the points in time have one.
    """

    counted: Literal["in seconds", "from the lower bound, in seconds"]
    origin: Microseconds
    bounds: tuple[Microseconds, Microseconds]
    zone: str | None


@dataclass(frozen=True)
class NoisePart(Record):
    """Noise of one measured block.

    Parameters
    ----------
    scale
        Scale of the noise on the integers: sigma of a Gaussian before rounding, b of a discrete
        Laplace. 0: the relation of neighbors makes the number public.
    step
        Size of one integer in the units of the column: real values were rounded to this grid.
    members
        How many coordinates were drawn together with this one, itself included.
    """

    scale: NotNegative
    step: Annotated[float, Limits(gt=0)]
    members: AtLeastOne


@dataclass(frozen=True)
class RoundedPart(Record):
    """How the values of a column were rounded after the release.

    Parameters
    ----------
    decimals
        Number of decimals; -2: to hundreds.
    most
        By how much a value may differ from the one released.
    """

    decimals: Decimals
    most: NotNegative


def _is_in_range(bound: Bound) -> bool:
    """Whether a bound that is a number, perhaps a whole one, is no larger than all floats."""
    return isinstance(bound, str) or abs(bound) <= sys.float_info.max


@dataclass(frozen=True)
class ColumnPart(Record):
    """One released column and its noise.

    Parameters
    ----------
    name
        Its label.
    kind
        What it estimates. Counts and sums have noise around the truth; a mean is a ratio of two of
        them, which SP 800-226 would have you check for bias, and so is a rate: a share of the rows.
    column
        Label of the private column it is about; null for counts and rates.
    where
        A condition of its own, beside that of the query.
    condition
        The condition whose share of the rows a rate is; null for other columns.
    bounds
        Bounded contribution: values were clipped to [lower, upper], declared without looking at the
        data; null for counts and rates. Clipping is a bias that no error bar shows.
    times
        How a column of durations or points in time is counted; null for other columns. Bounds are
        then texts, and errors and loadings in seconds.
    integer
        Whether the truth is a whole number.
    noise
        The noise of a column that is measured as it is; null where it is read off several
        measurements.
    std_error
        Utility: the standard deviation of the noise in the units of the column, the same in all
        rows; null where it differs from row to row, as for means.
    loadings
        By how much one standard deviation of each measured block moves this column: utility of
        whatever is computed from several columns. Names of blocks are whole numbers; -1 stands for
        the error of rows that were given, and those below it for rounding a column to whole
        numbers. Null for quantiles, which were selected or read off many numbers.
    ratio
        What a mean or a rate was read off; null for other columns.
    moments
        What a variance or a standard deviation was read off; null for other columns.
    rounded
        How the values were rounded after the release; null: they were not.
    """

    name: str
    kind: Statistic
    column: str | None
    where: str | None
    condition: str | None
    bounds: tuple[Bound, Bound] | None
    times: TimesPart | None
    integer: bool
    noise: NoisePart | None
    std_error: NotNegative | None
    loadings: Annotated[Mapping[BlockName, float | Packed], Limits(min_length=1)] | None
    ratio: RatioPart | None
    moments: MomentsPart | None
    rounded: RoundedPart | None

    def __post_init__(self) -> None:
        counts = self.kind in ("count", "rate")
        about = {self.column is None, self.bounds is None, counts}
        require(len(about) == 1, "counts and rates alone have neither a column nor bounds")
        require((self.kind == "rate") == (self.condition is not None), "rates have a condition")
        require(not (counts and self.times), "counts are not times")
        in_words = {isinstance(bound, str) for bound in self.bounds or ()}
        require(in_words <= {self.times is not None}, "bounds are texts for times alone")
        require(all(map(_is_in_range, self.bounds or ())), "bounds are in the range of floats")
        exact = self.noise is not None or self.std_error is not None or self.integer
        require(self.is_total or not exact, "counts and sums alone are measured integers")
        require(self.is_mean or self.ratio is None, "means and rates alone are ratios")
        spread = self.kind in ("var", "std")
        require(spread or self.moments is None, "variances alone are read off moments")
        quantile = self.kind == "quantile"
        require(quantile == (self.loadings is None), "quantiles alone have no loadings")
        require(not (spread and self.times), "variances are not times")

    @classmethod
    def of_quantiles(
        cls, name: str, column: str, bounds: tuple[Bound, Bound], times: TimesPart | None = None
    ) -> "ColumnPart":
        """Describe a column of quantiles: no noise of its own is known of it."""
        absent = ("where", "condition", "noise", "std_error", "loadings", "ratio", "moments")
        none = dict.fromkeys((*absent, "rounded"), None)
        return cls(
            name=name,
            kind="quantile",
            column=column,
            bounds=bounds,
            times=times,
            integer=False,
            **none,
        )

    @property
    def is_mean(self) -> bool:
        """Whether it is a ratio, whose error differs from row to row: a rate is a mean, too."""
        return self.kind in ("mean", "rate")

    @property
    def is_total(self) -> bool:
        """Whether it is a count or a sum, with an error that is the same in all rows."""
        return self.kind in ("count", "sum")

    @property
    def span(self) -> tuple[float, float]:
        """What a row can add at least and at most: numbers, or microseconds from the origin."""
        if self.times is not None:
            first, last = self.times.bounds
            return first - self.times.origin, last - self.times.origin
        lower, upper = self.bounds or (0, 1)
        return float(lower), float(upper)

    @property
    def origin(self) -> int | None:
        """Where times are counted from, in microseconds; `None` for a column of numbers."""
        return None if self.times is None else self.times.origin

    @property
    def deviations(self) -> dict[str, float | np.ndarray]:
        """By block, what its noise does to the values: one number, or one for each row.

        Raises
        ------
        QueryError
            If these are quantiles.
        """
        if self.loadings is None:
            raise _no_errors()
        return {block: unpack(loading) for block, loading in self.loadings.items()}


def _no_errors() -> QueryError:
    return QueryError(
        "quantiles that were selected have no error bars: no noise was added to them, and how far "
        "off they are depends on rows that are not released. For intervals, release the "
        "distribution, .dp.ranges(...), and read quantiles off that; .dp.preview says by how "
        "many rows selected ones may be off."
    )


@dataclass(frozen=True)
class MechanismPart(Record):
    """The mechanism: where the noise comes from.

    It is added by the trusted holder of the data (central model), to exact integers and as
    integers, drawn exactly, so that no low bits of floating-point numbers tell the truth.

    Parameters
    ----------
    name
        Name of the mechanism.
    title
        The mechanism in words.
    law
        Law of the noise on every measured integer: a Gaussian, rounded, the discrete Laplace law,
        or that of a box, which is the discrete Laplace law for a block that is drawn on its own.
        Geometric: of the utilities of bins, of which one was selected.
    scales
        Scale of the noise of each measured block that the table reads, or that is drawn together
        with one, by its number, on its integers. 0: the relation of neighbors makes it public.
    groups
        Blocks whose noise is drawn together in a row: it is uncorrelated, but not independent.
    joined
        Whether it is drawn together over all rows, in place of each.
    structure
        How errors of several rows go together, where they were measured over many cells at once;
        its blocks have no scale of their own. Null: rows were measured one by one.
    """

    name: Annotated[str, OneOf((*MECHANISMS, SELECT))]
    title: Text
    law: Annotated[str, OneOf((*LAWS, GEOMETRIC))]
    scales: Mapping[BlockName, NotNegative]
    groups: tuple[tuple[BlockName, ...], ...]
    joined: bool
    structure: StructurePart | None

    def __post_init__(self) -> None:
        law = GEOMETRIC if self.selects else MECHANISMS[self.name].law.name
        require(self.law == law, "the law is that of the mechanism")
        require(not (self.selects and self.scales), "what is selected has no noise")
        grouped = [block for group in self.groups for block in group]
        require(len(set(grouped)) == len(grouped), "a block is in one group")
        require({*grouped} <= self.scales.keys(), "blocks of groups have a scale")
        require(not self.joined or len(self.groups) == 1, "one group reaches over all rows")

    @property
    def selects(self) -> bool:
        """Whether it selects values, in place of adding noise to them."""
        return self.name == SELECT

    def check_noise(self) -> None:
        """Refuse what is about noise, where values were selected.

        Raises
        ------
        QueryError
            If they were.
        """
        if self.selects:
            raise _no_errors()

    def drawn_together(self, rows: int, common: Collection[str]) -> list[tuple[str, ...]]:
        """Return the groups, with each block as often as it has coordinates in them.

        Parameters
        ----------
        rows
            Number of rows.
        common
            Blocks of a single integer.
        """
        if not self.joined:
            return list(self.groups)
        return [
            tuple(block for block in group for _ in range(1 if block in common else rows))
            for group in self.groups
        ]

    @property
    def distribution(self) -> Law:
        """The law of the noise, by which intervals are made.

        Raises
        ------
        QueryError
            If values were selected.
        """
        self.check_noise()
        return law_named(self.law)
