"""The parts of a certificate about a release: whose data, what was asked, what it cost.

The docstrings say which question about a guarantee a field answers; they are the descriptions of
the JSON Schema. The questions are those of NIST SP 800-226 (Near, Darais, Lefkovitz and Howarth
2025).
"""

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from dpframe.certificates import json_records as records
from dpframe.certificates.definitions import CutPart, Definition
from dpframe.checker.rounds import chance_shown
from dpframe.checker.witness import Found, LoneLabels, Witness, WitnessCells
from dpframe.privacy.amounts import PrivacyLoss
from dpframe.privacy.laws import LAWS
from dpframe.privacy.selection import GEOMETRIC

Delta: TypeAlias = Annotated[float, records.Limits(ge=0, lt=1)]


class CapsPart(records.Record):
    """Bounded contribution: how much one unit could fill.

    Rows beyond were dropped at random, a bias that no error bar shows.

    Parameters
    ----------
    max_rows
        Most rows of one unit in all; null: no such limit.
    max_groups
        Most groups that one unit was in; null: no such limit.
    max_rows_per_group
        Most rows of one unit in one group; null: no such limit.
    """

    max_rows: records.AtLeastOne | None
    max_groups: records.AtLeastOne | None
    max_rows_per_group: records.AtLeastOne | None

    @property
    def single_row(self) -> bool:
        """Whether one unit has no more than one row."""
        return self.max_rows == 1 or self.max_groups == self.max_rows_per_group == 1


class UnitPart(records.Record):
    """The unit of privacy: whose data the guarantee is about.

    A guarantee for rows protects a person with many rows less.

    Parameters
    ----------
    columns
        Columns that name the unit a row belongs to; all rows of one value, or of one combination of
        values, are protected together, and who is in k of them is protected as k units. Empty: each
        row is a unit, and all caps are 1.
    caps
        How much one unit could fill: a limit on its rows, in all or in each group.
    """

    columns: tuple[str, ...]
    caps: CapsPart

    def __post_init__(self) -> None:
        caps = self.caps
        limited = caps.max_rows is not None or caps.max_rows_per_group is not None
        records.require(limited, "one of max_rows and max_rows_per_group is a number")
        alike = bool(self.columns) or set(vars(caps).values()) == {1}
        records.require(alike, "where each row is a unit, all caps are 1")


class GroupingPart(records.Record):
    """One grouping column.

    Parameters
    ----------
    column
        Label of the grouping column.
    groups
        How many groups of it are released.
    source
        Where the groups were written down: in the call, by keyword when the frame was declared, or
        in a schema; or the type of the column says them, false and true. Unknown groups are a leak
        that SP 800-226 warns of: none of these is the data.
        Discovered: they were not known, and found under this guarantee. Found: so they were, under
        the guarantee of an earlier release, which is counted by itself.
    rest
        The group that also holds all rows with none of the other keys, missing ones too; null: such
        rows were left out.
    """

    column: str
    groups: records.AtLeastNone
    source: Annotated[
        str, records.OneOf(["call", "declared", "schema", "type", "discovered", "found"])
    ]
    rest: str | None

    def __post_init__(self) -> None:
        declared = self.source != "discovered"
        records.require(self.groups > 0 or not declared, "known groups are one or more")


class KnownRowsPart(records.Record):
    """Numbers of rows that were given.

    Parameters
    ----------
    rows
        One number for each row of the release.
    variance
        Variance of their error; 0: exact.
    """

    rows: float | records.Packed
    variance: records.NotNegative


class OptionsPart(records.Record):
    """Options of a query that shape its noise.

    Parameters
    ----------
    max_true
        Bounded contribution: at most so many true columns of a row count; null: no such limit.
    n_weight
        How much the error of the number of rows weighs in the choice of the noise.
    objective
        What the choice of the noise makes small: the total of all errors, or the worst of them.
    n
        Numbers of rows that were given as public, with the variance of their own error; null: none
        were. Whether they are public is for the data holder to know.
    """

    max_true: records.AtLeastOne | None
    n_weight: records.NotNegative
    objective: Literal["total", "worst"]
    n: KnownRowsPart | None


class QueryPart(records.Record):
    """What was asked.

    SP 800-226 asks which question was answered, and which parts of it are public: everything here
    is.

    Parameters
    ----------
    name
        Name of the query among those released together; null if it was released alone.
    words
        The query in words.
    by
        The grouping columns, in the order of the levels of the index. Which groups there are:
        public, and never read from the data.
    cells
        Number of rows of the release. It does not depend on the data, but where groups were
        discovered: then it is a result as the counts are.
    outputs
        Number of columns of the release.
    where
        Which rows were looked at: a condition on each row alone.
    left_out
        Where some of these are left out, beside those beyond the caps, in words.
    options
        Options that shape its noise.
    """

    name: str | None
    words: records.Text
    by: tuple[GroupingPart, ...]
    cells: records.AtLeastNone
    outputs: records.AtLeastOne
    where: str | None
    left_out: tuple[str, ...]
    options: OptionsPart

    def __post_init__(self) -> None:
        discovered = any(grouping.source == "discovered" for grouping in self.by)
        records.require(self.cells > 0 or discovered, "known groups have one row or more")


class LossPart(records.Record):
    """The privacy parameters: what the release costs.

    It is counted together with all tables released with it.

    Parameters
    ----------
    mu
        Strength as Gaussian differential privacy: telling neighbors apart is no easier than telling
        a standard normal from one moved by mu.
    epsilon
        The epsilon of (epsilon, delta)-differential privacy at that delta; null where no delta was
        given.
    delta
        The delta at which epsilon holds; 0 is pure differential privacy; null where none was given:
        mu then gives an epsilon for every delta.
    rho
        Strength as zero-concentrated differential privacy.
    extra_delta
        Probability with which a group of one unit alone may be published, where groups were
        discovered; mu and rho hold beside it, and delta includes it. 0 in other releases.
    joint
        Whether several tables share this loss, which then counts once for all of them.
    """

    mu: records.NotNegative
    epsilon: records.NotNegative | None
    delta: Delta | None
    rho: records.NotNegative
    extra_delta: Delta
    joint: bool

    def __post_init__(self) -> None:
        together = (self.epsilon is None) == (self.delta is None)
        records.require(together, "epsilon and delta are given together")


class BudgetPart(records.Record):
    """The total that was declared for everything charged to a ledger.

    Parameters
    ----------
    epsilon
        Epsilon of the total.
    delta
        Delta of the total.
    discovery
        The part of delta that is kept for extra deltas.
    """

    epsilon: records.NotNegative
    delta: Delta
    discovery: Delta


class LedgerPart(records.Record):
    """A budget and what is spent of it.

    Parameters
    ----------
    id
        Identifier of the ledger; the guarantees of releases with the same one add up in it.
    budget
        The total that was declared.
    part
        The share that this release asked for, or else the part of the budget that it took.
    used
        The sum of shares until then, or else the part of the budget that was used; this release
        included.
    in_shares
        Whether both are shares.
    of_part
        The part of the data that has this budget, week='47' for instance, where each has one;
        `None`: all of it.
    """

    id: records.Identifier
    budget: BudgetPart
    part: records.NotNegative
    used: records.NotNegative
    in_shares: bool
    of_part: str | None


class WitnessCellsPart(records.Record):
    """Cells in which the worst unit moves integers alike.

    A row of the unit adds x to the measured integer of a block, and a row of the unit in its place
    adds y. With a and b rows of them, the integer moves by |a x - b y|. That costs (moved /
    scale)^2 of mu squared with Gaussian noise, and moved / scale of epsilon with other noise; with
    staircase noise of scale D + b, log(1 / b) for each started D. Where integers are measured over
    many cells, it is the sum of f times what |u a x - v b y| costs.

    Parameters
    ----------
    times
        How many such cells there are; of groups that are found, how many of them.
    rows
        a and b.
    moves
        x and y by block. Of blocks whose noise is drawn together, in a box, the farthest counts and
        stands alone.
    shared
        u, v and f, for all that is measured. Of a single cell: 1, 1, 1.
    """

    times: records.AtLeastOne
    rows: tuple[records.AtLeastNone, records.AtLeastNone]
    moves: records.ByBlock[tuple[int, int]]
    shared: tuple[tuple[int, int, float], ...]


class LoneLabelsPart(records.Record):
    """Groups that one unit alone has: the extra delta is the chance that noise shows one of them.

    With noise Y it is 1 - (1 - P(Y >= threshold - weight))^labels.

    Parameters
    ----------
    labels
        How many groups.
    weight
        What the unit counts for in each.
    threshold
        The least noisy number that is published.
    """

    labels: records.AtLeastOne
    weight: records.AtLeastOne
    threshold: records.AtLeastOne


class WitnessPart(records.Record):
    """The worst unit that a check of the charge found, for what was measured together.

    The costs of all measurements add up to at most what was charged. The check is made by code that
    made no plan. This unit proves what it costs itself, not that no other one costs more: that is
    the proof of the code.

    Parameters
    ----------
    law
        Law of the noise.
    alike
        How many measurements of the release are as this one.
    scales
        Scale of the noise on the integers that move, by block; of selections, by quantile.
    cells
        What the unit moves.
    lone
        Groups that one unit alone has, where groups were found; null: none were looked for.
    unit
        The unit in words.
    sampled
        Whether there are units that no tried one stands for: then the check is a test, and only the
        proof of the plan holds for all.
    """

    law: Annotated[str, records.OneOf([*LAWS, GEOMETRIC])]
    alike: records.AtLeastOne
    scales: records.ByBlock[records.NotNegative]
    cells: tuple[WitnessCellsPart, ...]
    lone: LoneLabelsPart | None
    unit: records.Text
    sampled: bool

    def __post_init__(self) -> None:
        named = {block for cells in self.cells for block in cells.moves}
        records.require(named <= self.scales.keys(), "blocks that move have a scale")
        law = LAWS.get(self.law)
        of_law = law is None or all(map(law.knows, filter(None, self.scales.values())))
        records.require(of_law, "scales are of the law")

    @property
    def loss(self) -> PrivacyLoss:
        """What the unit costs in one such measurement, computed anew."""
        scales = {int(block): scale for block, scale in self.scales.items()}
        cells = tuple(
            WitnessCells(
                part.times,
                part.rows,
                {int(block): pair for block, pair in part.moves.items()},
                part.shared,
            )
            for part in self.cells
        )
        lone = None
        if self.lone is not None and self.law in LAWS:
            labels = LoneLabels(self.lone.labels, self.lone.weight, self.lone.threshold)
            lone = labels, chance_shown(LAWS[self.law], scales[0], labels)
        return Found(self.law, scales, cells, self.unit, lone=lone).loss


def witness_parts(witness: Witness) -> tuple[WitnessPart, ...]:
    """Write the worst units of a release; those that are the same, once."""
    alike: list[tuple[Found, int]] = []
    for unit in witness.found:
        place = next((at for at, (earlier, _) in enumerate(alike) if earlier == unit), None)
        if place is None:
            alike.append((unit, 1))
        else:
            alike[place] = unit, alike[place][1] + 1
    return tuple(_part(unit, times) for unit, times in alike)


def recomputed_loss(parts: Iterable[WitnessPart]) -> PrivacyLoss:
    """Return what the worst units of all measurements cost together."""
    loss = PrivacyLoss()
    for part in parts:
        lost = part.loss
        loss += PrivacyLoss(*(part.alike * amount for amount in lost.parts))
    return loss


def _part(unit: Found, alike: int) -> WitnessPart:
    lone = None
    if unit.lone is not None:
        labels, _ = unit.lone
        lone = LoneLabelsPart(labels.labels, labels.weight, labels.least)
    return WitnessPart(
        unit.law,
        alike,
        {str(block): scale for block, scale in sorted(unit.scales.items())},
        tuple(
            WitnessCellsPart(
                part.times,
                part.rows,
                {str(block): pair for block, pair in part.moves.items()},
                part.kernel,
            )
            for part in unit.cells
        ),
        lone,
        unit.words,
        unit.sampled,
    )


_FASTEST = 1  # level of zlib: noise does not get smaller by more work
_MOST_BYTES = 1 << 28  # of what is unpacked: a file may say anything
DTYPES = (
    "(object|category|str|string(\\[(python|pyarrow)\\])?"
    "|[Uu]?[Ii]nt(8|16|32|64)|[Ff]loat(32|64)|bool(ean)?"
    "|(datetime64|timedelta64|period)\\[[^\\]]*\\]"
    "|interval\\[[^\\]]*(\\[[^\\]]*\\])?, (left|right|both|neither)\\]"
    "|(u?int(8|16|32|64)|float|double|bool|(large_)?string|(timestamp|duration)\\[[^\\]]*\\])"
    "\\[pyarrow\\])"
)
Dtype: TypeAlias = Annotated[str, records.Limits(pattern=f"^{DTYPES}$")]
"""The dtypes that are read: another, from a file, may ask for any amount of memory."""
Token: TypeAlias = str
"""A label or a key with its kind, as JSON."""


class Zipped(records.Held):
    """Many numbers, or a long text.

    Parameters
    ----------
    zlib
        Numbers of 64 bits, little-endian, or a text in UTF-8; compressed by zlib, in base64.
    """

    zlib: records.Base64

    @classmethod
    def of(cls, numbers: np.ndarray, dtype: str) -> "Zipped":
        """Keep numbers."""
        return cls.holding(_content=records.owned(np.ravel(numbers), dtype))

    @classmethod
    def writing(cls, content: Any, write: Callable[[Any], bytes]) -> "Zipped":
        """Keep an object, and how it is written."""
        return cls.holding(_content=content, _bytes_of=write)

    @property
    def content(self) -> Any:
        """The object that was kept; `None` of what was read from a file."""
        return vars(self).get("_content")

    def _write(self, content: Any) -> str:
        bytes_of = vars(self).get("_bytes_of", np.ndarray.tobytes)
        plain = bytes_of(content)
        return base64.b64encode(zlib.compress(plain, _FASTEST)).decode("ascii")

    def unzip(self) -> bytes:
        """Return what was compressed.

        Raises
        ------
        ValueError
            If it is no such thing, or would take too much memory.
        """
        # unpacked up to a limit: a short text from a file can stand for gigabytes
        reader = zlib.decompressobj()
        try:
            plain = reader.decompress(base64.b64decode(self.zlib), _MOST_BYTES)
        except zlib.error:
            raise ValueError("compressed numbers are damaged") from None
        if not reader.eof:
            raise ValueError("compressed numbers are too many")
        return plain

    def numbers(self, dtype: str, size: int) -> np.ndarray:
        """Return so many numbers of a dtype, that of what was kept.

        Raises
        ------
        ValueError
            If they are not that many.
        """
        kept = self.content
        values: np.ndarray = np.frombuffer(self.unzip(), dtype) if kept is None else kept
        if len(values) != size:
            raise ValueError("columns have a number for each row")
        return values

    def listed(self) -> list[Any]:
        """Return a list that was written as JSON."""
        keys = json.loads(self.unzip().decode("utf-8", "surrogatepass"))
        if not isinstance(keys, list):
            raise TypeError("keys are a list")
        return keys


class LevelPart(records.Record):
    """A level of keys.

    Parameters
    ----------
    name
        Its name, as JSON.
    dtype
        Their dtype in pandas.
    keys
        The keys, each once: integers, and times in the unit of the dtype, as numbers of 64 bits;
        others as a list in JSON, in which texts, numbers and truths are as they are, and the rest
        is a list of its kind and what it takes to write it.
    """

    name: Token
    dtype: Dtype
    keys: Zipped


class CellsPart(records.Record):
    """The cells of a column.

    Parameters
    ----------
    label
        Its label, as JSON.
    dtype
        Their dtype in pandas.
    values
        Whole numbers, floats, or microseconds of times: one for each row.
    missing
        A byte for each row: 1 where the cell is missing; null: none is.
    definition
        How it was computed from the release; null: it was released.
    """

    label: Token
    dtype: Dtype
    values: Zipped
    missing: Zipped | None
    definition: Annotated[Definition, records.TaggedBy("call")] | None


class AliasPart(records.Record):
    """What is shown under another name: by the new one, the one that was released; as JSON.

    Parameters
    ----------
    columns
        Labels of columns.
    levels
        Names of levels.
    keys
        Keys, by the released name of their level.
    """

    columns: Mapping[Token, Token]
    levels: Mapping[Token, Token]
    keys: Mapping[Token, Mapping[Token, Token]]


NO_ALIAS = AliasPart({}, {}, {})


class JoinedPart(records.Record):
    """The level that tells several releases apart.

    Parameters
    ----------
    name
        Its name.
    keys
        The keys of the releases, in order.
    """

    name: str
    keys: tuple[str, ...]


class PublishedPart(records.Record):
    """What a table shows that was made for publication. What it does not show is not in it.

    Parameters
    ----------
    cells
        By column, as JSON, how many cells are shown, and how many there are.
    units
        By column, as JSON, the unit to which its cells are rounded; 0: they are as released.
    note
        A sentence about it.
    """

    cells: Mapping[Token, tuple[records.AtLeastNone, records.AtLeastNone]]
    units: Mapping[Token, records.NotNegative]
    note: str | None


class TablePart(records.Record):
    """The cells that were released, by their keys. Their layout is free.

    Parameters
    ----------
    levels
        The levels of keys, in order.
    rows
        Number of rows.
    codes
        For each level, the position of the key of each row; null: all combinations, in order, the
        last level running fastest.
    columns
        The columns, in order.
    alias
        What is shown under another name.
    units
        Units to which `.dp.round` rounded, by column, as JSON.
    cuts
        How cells were chosen by their values, as far as that is known.
    joined
        How several releases are told apart; null: by their own keys, or there is one.
    published
        What is shown, where the rest was left out for publication; null: nothing was.
    salt
        Random: without it, nobody can guess cells that are not shown from `origin`. It is left out
        with them.
    origin
        SHA-256 of releases, keys, released cells and salt: the same in all tables made of them.
    """

    levels: tuple[LevelPart, ...]
    rows: records.AtLeastNone
    codes: Zipped | None
    columns: tuple[CellsPart, ...]
    alias: AliasPart
    units: Mapping[Token, Annotated[float, records.Limits(gt=0)]]
    cuts: tuple[CutPart, ...]
    joined: JoinedPart | None
    published: PublishedPart | None
    salt: Annotated[str, records.Limits(pattern="^[0-9a-f]{32}$")] | None
    origin: records.Digest

    @property
    def released(self) -> Sequence[CellsPart]:
        """The columns that were released."""
        return [column for column in self.columns if column.definition is None]

    @property
    def definitions(self) -> Sequence[Definition]:
        """How the other columns were computed."""
        return [column.definition for column in self.columns if column.definition is not None]
