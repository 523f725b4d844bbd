"""Tables of known groups: counts, sums and whatever else is decoded from noisy totals."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Self, cast, get_args

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from dpframe.arguments import is_one_of
from dpframe.cells.record import attach
from dpframe.cells.verify import look
from dpframe.certificates.certificate import Release
from dpframe.certificates.parts import LedgerPart
from dpframe.checker.check import witness_of
from dpframe.checker.witness import Witness
from dpframe.context import Context, cached_property
from dpframe.declaration.facts import Declaration
from dpframe.engines import Engine, Frame
from dpframe.engines.base import totals_by
from dpframe.engines.declared import SINGLE, check_queries
from dpframe.errors import CalibrationError, QueryError, of_query, quote
from dpframe.frozen import frozen
from dpframe.inference.intervals import SharedNoise, unknown_cells
from dpframe.inference.intervals import half_width as width_of
from dpframe.inference.ranges import least_squares
from dpframe.ledger.log import Entry
from dpframe.operations.pipeline import Certifier, Operation
from dpframe.operations.probing import check_rows, recognized
from dpframe.operations.record import Describe, mechanism_of, noise_of_column, record_of
from dpframe.options import NO_AIM, Aim, Usefulness, Within
from dpframe.plan.columns import OutputColumn
from dpframe.plan.designs import NoisyDesign
from dpframe.plan.joining import Joining, NamedTables
from dpframe.plan.laws import plan_by_mechanism
from dpframe.plan.plan import Excess, Plan, plan_joined
from dpframe.plan.tables import Table, TableName, caps_of, name_of
from dpframe.privacy.amounts import Spend
from dpframe.progress import show_progress
from dpframe.queries.edges import durations, moments
from dpframe.queries.of_columns import several_rows
from dpframe.queries.query import Query, Request
from dpframe.queries.reading import check_number
from dpframe.queries.tasks import Axis, Task
from dpframe.steps.denoise import apply_denoising, check_margins, made_consistent
from dpframe.steps.denoise_checks import Denoising, Described, check_denoising
from dpframe.steps.quantiles import quantiles_of
from dpframe.strategies.base import Estimate

PER_ROWS = frozenset({"1 / rows", "1 / weighted total"})
"""Of what an error is, where it is to be divided by the number of rows of a cell, or weights."""

_CONSISTENT = "consistent"


@frozen(eq=False)
class Denoisings:
    """How the tables of a release are to be denoised.

    Parameters
    ----------
    tables
        How each is, by its name, where it is on its own.
    margins
        Queries whose tables are made whole numbers that add up.
    """

    tables: Mapping[Hashable, Denoising] = field(default_factory=dict)
    margins: frozenset[Hashable] = frozenset()


def denoisings_of(plan: Plan, method: str | None, graph: object) -> Denoisings:
    """Check how the tables of a release are to be denoised.

    Parameters
    ----------
    plan
        The release.
    method, graph
        As for `release`.

    Raises
    ------
    QueryError
        If they cannot be denoised so.
    """
    if method is None:
        remedy = 'Give denoise="auto" as well.'
        raise QueryError.about("graph", "is for denoising", graph, remedy)
    together = {name: table for name, table in plan.tables.items() if plan.of(table).is_over_cells}
    margins = _margins(plan, together) if method == _CONSISTENT else frozenset()
    alone = {
        name: _describe(plan, table) for name, table in plan.tables.items() if name not in together
    }
    if together and not alone and not margins:
        rule = "takes the errors of cells for independent, and these are measured together"
        remedy = 'Margins of at most two columns take denoise="consistent"; leave it out elsewhere.'
        raise QueryError.about("denoise", rule, method, remedy)
    if margins:
        _check_margins_alone(list(margins), list(alone), graph)
        return Denoisings(margins=margins)
    tables = {}
    for name, facts in alone.items():
        # a table of means that the method is not for stays as it is beside others
        if len(alone) == 1 or method == "auto" or any(column.is_total for column in facts):
            index = plan.tables[name].cells.index
            with of_query(name):
                tables[name] = check_denoising(method, index, facts, graph=graph, called="denoise")
    return Denoisings(tables)


def _check_margins_alone(
    margins: Sequence[Hashable], others: Sequence[Hashable], graph: object
) -> None:
    """Refuse what has no meaning where margins are made whole."""
    if others:
        wrong = f'denoise="consistent" is for margins, and {others[0]!r} is released beside them.'
        call = f"dpf.consistent(tables[{margins[0]!r}])"
        remedy = f"Release margins on their own, or leave denoise= out and call {call} afterwards."
        raise QueryError(f"{wrong} {remedy}", parameter="denoise", value=_CONSISTENT)
    if graph is not None:
        reason = 'graph= has no meaning for denoise="consistent" of margins:'
        remedy = "no groups are neighbors there. Leave it out."
        raise QueryError(f"{reason} {remedy}", parameter="graph")


def _margins(plan: Plan, tables: Mapping[Hashable, Table]) -> frozenset[Hashable]:
    """Check the tables of every query for margins, and name these queries."""
    sets: dict[Hashable, list[tuple[Hashable, ...]]] = {}
    columns: dict[Hashable, list[Described]] = {}
    all_cells: dict[Hashable, bool] = {}
    for name, table in tables.items():
        if isinstance(name, TableName):
            sets.setdefault(name.query, []).append(name.columns)
            columns[name.query] = _describe(plan, table)
            all_cells[name.query] = table.measured.cells.chosen is None
    for query, columns_of_tables in sets.items():
        check_margins(columns_of_tables, columns[query], all_cells=all_cells[query])
    return frozenset(sets)


def _describe(plan: Plan, table: Table) -> list[Described]:
    return [
        Described(
            column.name,
            column.form,
            None if cell.per_row else cell.std_error * column.step,
            column.row_weights is not None,
        )
        for column, cell in zip(table.outputs, plan.predictions(table), strict=True)
    ]


@frozen(eq=False, kw_only=True)
class PlannedTables(Operation):
    """Tables of one query or several, released together.

    Parameters
    ----------
    plan
        What is measured, with which noise, and what it costs.
    several
        Whether queries have names.
    aim
        How accurate they are to be.
    denoisings
        How the tables are to be denoised.
    """

    plan: Plan
    several: bool
    aim: Aim = NO_AIM
    denoisings: Denoisings = Denoisings()

    @classmethod
    def of(
        cls, plan: Plan, declaration: Declaration, engine: Engine, *, several: bool, **more: Any
    ) -> Self:
        """Make a plan ready to be released; a subclass has more fields, or axes of its own."""
        axes: dict[Hashable, dict[Axis, None]] = {}  # which tables of margins share
        for key, table in plan.tables.items():
            axes.setdefault(name_of(key), {}).update(dict.fromkeys(table.groups.axes))
        listed = {name: list(columns) for name, columns in axes.items()}
        fields: dict[str, Any] = {"axes": listed, **more}
        return cls(
            declaration=declaration,
            engine=engine,
            mechanism=plan.mechanism,
            spend=plan.spend,
            loss=plan.loss,
            words=plan.words,
            caps=tuple(table.caps for table in plan.tables.values()),
            plan=plan,
            several=several,
            **fields,
        )

    @cached_property
    def tasks(self) -> Sequence[Task]:
        """What is totaled: the same is checked."""
        return [table.task(noisy.needs) for table, noisy in self.plan.designs.items()]

    @property
    def spends_all(self) -> bool:
        """Whether it costs all that was given: errors that are wanted may need less."""
        return self.aim.within is None

    def denoised(self, method: str | None, graph: object) -> Self:
        """Denoise the tables, too."""
        return replace(self, denoisings=denoisings_of(self.plan, method, graph))

    def outlook_table(self) -> pd.DataFrame:
        """One row per output column."""
        facts = self.outlook()
        rows = {label: row | facts for label, row in self.expected.items()}
        fields = next(iter(rows.values()))
        table = pd.DataFrame({name: [row[name] for row in rows.values()] for name in fields})
        names = [*["query"] * self.several, *["table"] * in_tables(self.plan.tables), "column"]
        labels: list[Any] = list(rows)
        if len(names) > 1:
            table.index = pd.MultiIndex.from_tuples(labels, names=names)
        else:
            table.index = pd.Index(labels, name="column", tupleize_cols=False)
        return table

    @cached_property
    def expected(self) -> Mapping[Hashable, dict[str, Any]]:
        """What to expect of every output, by column, or by query and column."""
        places = _places(self.plan.tables, several=self.several)
        return {
            label: {
                "mechanism": self.plan.of(table).mechanism,
                "part": self.plan.part_of(name),
                **_output(self.plan.of(table), table, place, self.aim.rows),
            }
            for label, (name, table, place) in places.items()
        }

    def useless(self) -> CalibrationError | None:
        """Return the error about outputs that say nothing, if there are any and none is wanted."""
        if self.aim.useful == "any" or self.aim.rows is None:
            return None
        outputs = self.expected
        useless = [label for label in outputs if outputs[label]["useful"] == "nothing"]
        if not useless:
            return None
        output = outputs[useless[0]]
        reach = f"95 % intervals reach {output['half_width_95']:.3g} to either side"
        wrong = (
            f"{useless[0]!r} would say nothing: its {reach}, in cells of {self.aim.rows:,.6g} rows."
        )
        remedy = 'Spend more, ask for fewer groups, or allow it: useful="any".'
        return CalibrationError(f"{wrong} {remedy}", parameter="useful", value=useless)

    def witness(self) -> Witness:
        """Find the worst unit of each measurement."""
        check_rows(self.declaration, self.tasks)
        pairs = zip(self.tasks, self.plan.designs.values(), strict=True)
        relation = self.declaration.neighboring
        return witness_of([recognized(task, noisy, relation) for task, noisy in pairs])

    def measure(self, frame: Frame, context: Context) -> list[list[np.ndarray]]:
        """Measure the integers of all tables in one pass over the frame."""
        answers = totals_by(self.engine, frame, self.tasks, context)
        pairs = zip(self.plan.designs.values(), answers, strict=True)
        return [noisy.encode(totals) for noisy, totals in pairs]

    def draw(self, exact: list[list[np.ndarray]], context: Context) -> list[list[np.ndarray]]:
        """Draw noise, together for blocks of a group, and add it."""
        noisy = []
        for blocks, design in zip(exact, self.plan.designs.values(), strict=True):
            noise = design.noise.draw([len(block) for block in blocks], context)
            pairs = zip(blocks, noise, strict=True)
            noisy.append([np.add(block, drawn, out=drawn) for block, drawn in pairs])
        return noisy

    def certifier(self, entry: Entry, witness: Witness, context: Context) -> Certifier:
        """Write the certificates of all tables but for values and ledger."""
        plan, tables, denoisings = self.plan, self.plan.tables, self.denoisings
        joint = len(tables) > 1
        facts = self.promise(entry, witness, context, joint=joint)
        records = {}
        noise: SharedNoise | None = None
        for key, table in tables.items():
            facts_of_table = facts | {"privacy_unit": self.unit_part(table.caps)}
            record = record_of(key, table, plan, self.declaration, facts_of_table)
            if any(not column.form.is_total for column in table.outputs):
                noise = SharedNoise.of(record[0], noise)
            records[key] = table.cells.index, record, noise
        if any(table.query.read for table in tables.values()):
            least_squares()

        def certify(noisy: list[list[np.ndarray]], ledger: LedgerPart | None) -> Any:
            estimates = {
                table: design.decode(blocks)
                for (table, design), blocks in zip(plan.designs.items(), noisy, strict=True)
            }
            frames = {}
            pairs = tables.items()
            for key, table in show_progress(pairs, "releasing", len(tables)) if joint else pairs:
                facts_of_table = estimates[table.measured][table.own]
                frames[key] = _certify_table(
                    facts_of_table,
                    table,
                    *records[key],
                    ledger=ledger,
                    denoising=denoisings.tables.get(key),
                    salt=context.new_id(),
                )
            gathered = _by_query(frames, denoisings)
            return gathered if self.several else gathered[SINGLE]

        return certify


def plan_tables(
    frame: Frame,
    declaration: Declaration,
    queries: Request,
    spend: Spend,
    mechanism: str | Mapping[Any, str],
    *,
    aim: Aim = NO_AIM,
    look: bool = False,
    apart: bool = False,
) -> PlannedTables:
    """Check everything public about a release and plan it, without reading data or spending."""
    engine, named = check_queries(frame, queries)
    if declaration.unit_columns:
        for name, query in named.items():
            with of_query(name):
                _check_sampled(declaration, query)
    several = isinstance(queries, Mapping)
    joining = Joining.of(declaration, named, apart=apart)
    excess = excess_of(aim, joining.all_tables, several=several)
    if isinstance(mechanism, Mapping):
        plan = plan_by_mechanism(joining, spend, mechanism, excess)
    else:
        plan = plan_joined(joining, spend, mechanism, excess=excess, look=look)
    tables = PlannedTables.of(plan, declaration, engine, several=several, aim=aim)
    engine.check(frame, tables.columns)
    return tables


def _check_sampled(declaration: Declaration, query: Query) -> None:
    """Refuse what a sampling error takes where no interval could have it."""
    if any(out.sampled for out in query.outputs):
        caps = caps_of(query, declaration)
        if 1 not in (caps.rows, caps.rows_per_group):
            raise several_rows(declaration.unit_columns, of_all_groups=False)


def _by_query(
    frames: Mapping[Hashable, pd.DataFrame], denoisings: Denoisings
) -> dict[Hashable, Any]:
    """Gather the tables of a query that asks for several, by their columns; denoise margins."""
    gathered: dict[Hashable, Any] = {}
    for key, frame in frames.items():
        if isinstance(key, TableName):
            gathered.setdefault(key.query, {})[key.columns] = frame
        else:
            gathered[key] = frame
    return gathered | {name: made_consistent(gathered[name]) for name in denoisings.margins}


def _certify_table(
    estimates: Sequence[Estimate],
    table: Table,
    index: pd.Index,
    record: tuple[Release, Sequence[Describe]],
    noise: SharedNoise | None,
    *,
    ledger: LedgerPart | None,
    denoising: Denoising | None,
    salt: str,
) -> pd.DataFrame:
    """Certify and denoise one table."""
    outputs = table.outputs
    release, describe = record
    described = tuple(say(estimate) for say, estimate in zip(describe, estimates, strict=True))
    columns: list[np.ndarray | ExtensionArray] = []
    for estimate, column, output in zip(estimates, described, outputs, strict=True):
        values = _in_units(estimate, output)
        if noise is not None and not column.form.is_total:
            hidden = np.broadcast_to(unknown_cells(column, noise), len(values))
            values = _without(values, hidden) if hidden.any() else values
        columns.append(values)
    released = _frame_of(columns, index, [output.name for output in outputs])
    release = replace(release, columns=described, ledger=ledger)
    attach(released, [release], salt=salt)
    read = table.query.read
    if read is not None:
        q = read.quantiles[0] if read.scalar else read.quantiles
        return quantiles_of(released, q, read.level, simultaneous=read.simultaneous)
    return released if denoising is None else apply_denoising(look(released), denoising)


def _frame_of(
    columns: Sequence[np.ndarray | ExtensionArray], index: pd.Index, names: Sequence[Hashable]
) -> pd.DataFrame:
    """Put columns together; numbers of one kind at once, which takes a third of the time."""
    labels = pd.Index([*names], tupleize_cols=False)
    kinds = {column.dtype for column in columns}
    if len(kinds) == 1 and isinstance(columns[0], np.ndarray):
        return pd.DataFrame(np.array(columns).T, index, labels, copy=False)
    frame = pd.DataFrame(dict(enumerate(columns)), index)
    frame.columns = labels
    return frame


def _without(values: np.ndarray | ExtensionArray, hidden: np.ndarray) -> Any:
    """Leave out some values of a column."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        return np.where(hidden, np.nan, values)
    return pd.Series(values).mask(hidden).array  # of times


def _in_units(estimate: Estimate, column: OutputColumn) -> np.ndarray | ExtensionArray:
    """From grid units to those of the column; integers stay integers, and times times."""
    if column.grid is not None and column.ticks is not None:
        exponent = column.grid.exponent
        convert = moments if column.is_mean else durations
        counted = np.ldexp(estimate.values, exponent) if exponent else estimate.values
        return convert(counted, column.ticks)
    if column.unit == 1 and not column.shift:
        return estimate.values
    values: np.ndarray = estimate.values * column.unit + column.shift
    return values


def _places(tables: NamedTables, *, several: bool) -> dict[Hashable, tuple[Hashable, Table, int]]:
    """Name all outputs: by the query, the columns of the table and their own, as far as needed."""
    by_table = in_tables(tables)
    return {
        _label(name, table, column, several=several, tables=by_table): (name, table, at)
        for name, table in tables.items()
        for at, column in enumerate(table.outputs)
    }


def in_tables(tables: NamedTables) -> bool:
    """Whether a query asks for several tables, so that outputs are named by table, too."""
    return any(table.of is not None for table in tables.values())


def _label(
    name: Hashable, table: Table, column: OutputColumn, *, several: bool, tables: bool
) -> Hashable:
    """Name an output: by its query, the columns of its table and its own, as far as needed."""
    query = (name_of(name),) if several else ()
    by = (tuple(axis.column for axis in table.cells.axes),) if tables else ()
    return (*query, *by, column.name) if query or by else column.name


def _output(noisy: NoisyDesign, table: Table, place: int, rows: float | None) -> dict[str, Any]:
    """Say what to expect of one output, in a cell of so many rows."""
    column, prediction = table.outputs[place], noisy.predictions[table.own][place]
    step, mechanism = column.unit, mechanism_of(noisy, table)
    noise = noise_of_column(column, prediction, noisy)
    loadings = {str(block): loading * step for block, loading in prediction.loadings.items()}
    groups = mechanism.drawn_together(table.cells.size)
    error = prediction.std_error * step
    width = width_of(noise, loadings, mechanism, groups, 0.95, integer=column.integer)
    per = "cell"
    if prediction.per_row:
        plain = column.row_weights is None
        per = "1 / rows" if plain else "1 / weighted total"
        if rows is not None:
            size = f"{rows:,.6g}"
            per = f"cell of {size} rows" if plain else f"cell of weighted total {size}"
        per_row = column.row_step / (rows or 1)
        error, width = error * per_row, float(width) * per_row
    return {
        "sigma": np.nan if noise is None else noise.scale * step,
        "std_error": error,
        "half_width_95": width,
        "per": per,
        "useful": "" if rows is None else _usefulness(float(width), _largest(table, place, rows)),
    }


_NOTHING, _ROUGH = 0.5, 0.1
"""Half-widths, in parts of what an output can be, from which it says nothing, or little."""


def _usefulness(half_width: float, largest: float) -> str:
    """Say how useful an output is, from the half-width of its intervals and what it can be."""
    if not 0 < largest < math.inf:
        return ""
    part = half_width / largest
    return "nothing" if part >= _NOTHING else "rough" if part >= _ROUGH else "good"


def _largest(table: Table, place: int, rows: float) -> float:
    """Return how far apart values can be; of a total, how large it is with all rows."""
    column, output = table.outputs[place], table.workload.outputs[place]
    if column.row_weights is not None:
        return math.inf
    low, high = table.workload.statistic(output).span
    span = rows * max(abs(low), abs(high)) if column.form.is_total else high - low
    return span * column.unit


def excess_of(aim: Aim, tables: NamedTables, *, several: bool) -> Excess | None:
    """Say by how much errors of tables are above those wanted; `None` where none are.

    Raises
    ------
    QueryError
        If there is no output of a name, or a limit is no number.
    """
    if aim.within is None:
        return None
    places = _places(tables, several=several)
    limits = _limits(aim.within, places, tables=in_tables(tables))

    def excess(measured: NamedTables, noisy: NoisyDesign) -> float | None:
        ratios = []
        for label, limit in limits.items():
            name, _, place = places[label]
            if name not in measured:
                continue
            output = _output(noisy, measured[name], place, aim.rows)
            if output["per"] in PER_ROWS:
                reason = "the error of a mean depends on the number of rows of its cell:"
                raise QueryError(f"{reason} give rows=, for instance rows=100.", parameter="rows")
            ratios.append(output["half_width_95"] / limit)
        return max(ratios, default=None)

    return excess


def _limits(
    within: float | Mapping[Hashable, float], labels: Iterable[Hashable], *, tables: bool
) -> Mapping[Hashable, float]:
    """Read how large errors of outputs may be; a name without a table is for all tables."""
    named = within if isinstance(within, Mapping) else dict.fromkeys(labels, within)
    by_name: dict[Hashable, list[Hashable]] = {label: [label] for label in labels}
    for label in [*by_name] if tables else ():
        by_name.setdefault(_without_table(label), []).append(label)
    if not named or any(label not in by_name for label in named):
        rule = f"must be a number, or a dict by output; the outputs are {quote(list(labels))}"
        raise QueryError.about("within", rule, within)
    rule = "must be a finite number above 0"
    limits = {label: check_number("within", size, rule) for label, size in named.items()}
    return {output: limit for label, limit in limits.items() for output in by_name[label]}


def _without_table(label: Hashable) -> Hashable:
    """Return the name of an output that has a table, without it."""
    if not isinstance(label, tuple):
        return label
    return (*label[:-2], label[-1]) if label[:-2] else label[-1]


def check_aim(within: Within, rows: object, useful: object) -> Aim:
    """Check how accurate a release is to be.

    Raises
    ------
    CalibrationError, QueryError
        If an argument is not usable.
    """
    if not is_one_of(useful, get_args(Usefulness)):
        raise CalibrationError.about("useful", 'must be "rough" or "any"', useful)
    rule = "must be a finite number at least 1"
    guess = None if rows is None else check_number("rows", rows, rule, least=1)
    return Aim(within, guess, cast(Usefulness, useful))
