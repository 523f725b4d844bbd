"""Tables of known groups: counts, sums and whatever else is decoded from noisy totals."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from dpframe.cells.record import attach
from dpframe.cells.verify import look
from dpframe.certificates.certificate import Release
from dpframe.certificates.parts import LedgerPart
from dpframe.checker.check import witness_of
from dpframe.checker.witness import Witness
from dpframe.context import Context
from dpframe.declaration.facts import Declaration
from dpframe.engines import Engine, Frame
from dpframe.engines.base import totals_by
from dpframe.engines.declared import SINGLE, check_queries
from dpframe.errors import QueryError, of_query
from dpframe.forks import cached_property
from dpframe.inference.distribution import least_squares
from dpframe.inference.intervals import half_width as width_of
from dpframe.ledger.log import Entry
from dpframe.operations.pipeline import Operation
from dpframe.operations.probing import check_rows, recognized
from dpframe.operations.record import Describe, mechanism_of, noise_of_column, record_of
from dpframe.plan.columns import OutputColumn
from dpframe.plan.plan import Plan, plan_release
from dpframe.plan.tables import Table, TableName, caps_of, name_of
from dpframe.privacy.amounts import Spend
from dpframe.privacy.neighbors import Caps
from dpframe.progress import show_progress
from dpframe.queries.of_columns import several_rows
from dpframe.queries.query import Query, Request
from dpframe.queries.tasks import Axis, Task
from dpframe.queries.timescale import durations, moments
from dpframe.steps.consistent import check_margins, made_consistent
from dpframe.steps.denoise import apply_denoising
from dpframe.steps.denoise_checks import Denoising, Described, check_denoising
from dpframe.steps.quantiles import quantiles_of
from dpframe.strategies.base import Estimate, Prediction

PER_ROWS = frozenset({"1 / rows", "1 / weighted total"})
"""Of what an error is, where it is to be divided by the number of rows of a cell, or weights."""

_CONSISTENT = "consistent"


@dataclass(frozen=True, eq=False)
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
        way = 'Give denoise="auto" as well.'
        raise QueryError.about("graph", "is for denoising", graph, way)
    together = {name: table for name, table in plan.tables.items() if plan.of(table).is_over_cells}
    margins = _margins(plan, together) if method == _CONSISTENT else frozenset()
    alone = {
        name: _describe(plan, table) for name, table in plan.tables.items() if name not in together
    }
    if together and not alone and not margins:
        rule = "takes the errors of cells for independent, and these are measured together"
        way = 'Margins of at most two columns take denoise="consistent"; leave it out elsewhere.'
        raise QueryError.about("denoise", rule, method, way)
    if margins:
        _check_margins_alone(list(margins), list(alone), graph)
        return Denoisings(margins=margins)
    tables = {}
    for name, facts in alone.items():
        # a table of means that the method is not for stays as it is beside others
        if len(alone) == 1 or method == "auto" or any(one.is_total for one in facts):
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
        way = f"Release margins on their own, or leave denoise= out and call {call} afterwards."
        raise QueryError(f"{wrong} {way}", parameter="denoise", value=_CONSISTENT)
    if graph is not None:
        why = 'graph= has no meaning for denoise="consistent" of margins:'
        way = "no groups are neighbors there. Leave it out."
        raise QueryError(f"{why} {way}", parameter="graph")


def _margins(plan: Plan, tables: Mapping[Hashable, Table]) -> frozenset[Hashable]:
    """Check the tables of every query for margins, and name these queries."""
    sets: dict[Hashable, list[tuple[Hashable, ...]]] = {}
    columns: dict[Hashable, list[Described]] = {}
    for name, table in tables.items():
        if isinstance(name, TableName):
            sets.setdefault(name.query, []).append(name.columns)
            columns[name.query] = _describe(plan, table)
    for query, own in sets.items():
        check_margins(own, columns[query])
    return frozenset(sets)


def _describe(plan: Plan, table: Table) -> list[Described]:
    return [
        Described(
            column.name,
            column.form,
            None if cell.per_row else cell.std_error * column.step,
            column.weights is not None,
        )
        for column, cell in zip(table.outputs, plan.predictions(table), strict=True)
    ]


@dataclass(frozen=True, eq=False, kw_only=True)
class PlannedTables(Operation):
    """Tables of one query or several, released together.

    Parameters
    ----------
    plan
        What is measured, with which noise, and what it costs.
    several
        Whether queries have names.
    denoisings
        How the tables are to be denoised.
    """

    plan: Plan
    several: bool
    denoisings: Denoisings = Denoisings()

    @classmethod
    def of(
        cls, plan: Plan, declaration: Declaration, engine: Engine, *, several: bool, **more: Any
    ) -> Self:
        """Make a plan ready to be released; a subclass has more fields."""
        return cls(
            declaration=declaration,
            engine=engine,
            mechanism=plan.mechanism,
            spend=plan.spend,
            loss=plan.loss,
            plan=plan,
            several=several,
            **more,
        )

    @property
    def words(self) -> str:
        """What is asked, in words."""
        return self.plan.words

    @cached_property
    def tasks(self) -> Sequence[Task]:
        """What is totaled: the same is checked."""
        return [table.task(noisy.needs) for table, noisy in self.plan.designs.items()]

    @property
    def caps(self) -> tuple[Caps, ...]:
        """What is kept of a unit, by table."""
        return tuple(table.caps for table in self.plan.tables.values())

    @property
    def axes(self) -> Mapping[Hashable, Sequence[Axis]]:
        """The groups of each query, by its name; tables of margins share them."""
        axes: dict[Hashable, dict[Axis, None]] = {}
        for key, table in self.plan.tables.items():
            axes.setdefault(name_of(key), {}).update(dict.fromkeys(table.groups.axes))
        return {name: list(shared) for name, shared in axes.items()}

    def denoised(self, method: str | None, graph: object) -> Self:
        """Denoise the tables, too."""
        return replace(self, denoisings=denoisings_of(self.plan, method, graph))

    def preview(self, rows: float | None = None) -> pd.DataFrame:
        """One row per output column; errors of means are those of a cell of so many rows."""
        plan, facts = self.plan, self.outlook()
        expected = expected_outputs(plan, rows, several=self.several)
        every = [one | facts for one in expected.values()]
        table = pd.DataFrame({name: [one[name] for one in every] for name in every[0]})
        names = [*["query"] * self.several, *["table"] * in_tables(plan), "column"]
        labels: list[Any] = list(expected)
        if len(names) > 1:
            table.index = pd.MultiIndex.from_tuples(labels, names=names)
        else:
            table.index = pd.Index(labels, name="column", tupleize_cols=False)
        return table

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

    def certifier(
        self, entry: Entry, witness: Witness, context: Context
    ) -> Callable[[list[list[np.ndarray]], LedgerPart | None], Any]:
        """Write the certificates of all tables but for values and ledger."""
        plan, tables, how = self.plan, self.plan.tables, self.denoisings
        joint = len(tables) > 1
        facts = self.promise(entry, witness, context, joint=joint)
        records = {}
        for key, table in tables.items():
            own = facts | {"privacy_unit": self.unit_part(table.caps)}
            record = record_of(key, table, plan, self.declaration, own)
            records[key] = table.cells.index, record
        if any(table.query.read for table in tables.values()):
            least_squares()

        def certify(noisy: list[list[np.ndarray]], ledger: LedgerPart | None) -> Any:
            estimates = {
                table: one.decode(blocks)
                for (table, one), blocks in zip(plan.designs.items(), noisy, strict=True)
            }
            frames = {}
            pairs = tables.items()
            for key, table in show_progress(pairs, "releasing", len(tables)) if joint else pairs:
                own = estimates[table.measured][table.own]
                frames[key] = _certify_table(
                    own,
                    table,
                    *records[key],
                    ledger=ledger,
                    how=how.tables.get(key),
                    salt=context.new_id(),
                )
            gathered = _by_query(frames, how)
            return gathered if self.several else gathered[SINGLE]

        return certify


def plan_tables(
    frame: Frame,
    declaration: Declaration,
    queries: Request,
    spend: Spend,
    mechanism: str,
    *,
    look: bool = False,
    apart: bool = False,
) -> PlannedTables:
    """Check everything public about a release and plan it, without reading data or spending."""
    engine, asked = check_queries(frame, queries)
    if declaration.unit_columns:
        for name, query in asked.items():
            with of_query(name):
                _check_sampled(declaration, query)
    plan = plan_release(declaration, asked, spend, mechanism, look=look, apart=apart)
    several = isinstance(queries, Mapping)
    tables = PlannedTables.of(plan, declaration, engine, several=several)
    engine.check(frame, tables.columns)
    return tables


def _check_sampled(declaration: Declaration, query: Query) -> None:
    """Refuse what a sampling error takes where no interval could have it."""
    if any(out.sampled for out in query.outputs):
        caps = caps_of(query, declaration)
        if 1 not in (caps.rows, caps.rows_per_group):
            raise several_rows(declaration.unit_columns, of_all_groups=False)


def _by_query(frames: Mapping[Hashable, pd.DataFrame], how: Denoisings) -> dict[Hashable, Any]:
    """Gather the tables of a query that asks for several, by their columns; denoise margins."""
    found: dict[Hashable, Any] = {}
    for key, frame in frames.items():
        if isinstance(key, TableName):
            found.setdefault(key.query, {})[key.columns] = frame
        else:
            found[key] = frame
    return found | {name: made_consistent(found[name]) for name in how.margins}


def _certify_table(
    estimates: Sequence[Estimate],
    table: Table,
    index: pd.Index,
    record: tuple[Release, Sequence[Describe]],
    *,
    ledger: LedgerPart | None,
    how: Denoising | None,
    salt: str,
) -> pd.DataFrame:
    """Certify and denoise one table."""
    outputs = table.outputs
    columns = dict(enumerate(map(_in_units, estimates, outputs)))
    release, describe = record
    described = tuple(say(estimate) for say, estimate in zip(describe, estimates, strict=True))
    released = pd.DataFrame(columns, index=index)
    released.columns = pd.Index([column.name for column in outputs], tupleize_cols=False)
    release = replace(release, columns=described, ledger=ledger)
    attach(released, [release], salt=salt)
    read = table.query.read
    if read is not None:
        return quantiles_of(released, read.quantiles, read.level, simultaneous=read.simultaneous)
    return released if how is None else apply_denoising(look(released), how)


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


def expected_outputs(
    plan: Plan, cell: float | None, *, several: bool
) -> dict[Hashable, dict[str, Any]]:
    """Say what to expect of every output, by column, or by query and column."""
    tables = in_tables(plan)
    return {
        _label(name, table, column, several=several, tables=tables): _output(
            plan, table, column, prediction, cell
        )
        for name, table in plan.tables.items()
        for column, prediction in zip(table.outputs, plan.predictions(table), strict=True)
    }


def in_tables(plan: Plan) -> bool:
    """Whether a query asks for several tables, so that outputs are named by table, too."""
    return any(table.of is not None for table in plan.tables.values())


def _label(
    name: Hashable, table: Table, column: OutputColumn, *, several: bool, tables: bool
) -> Hashable:
    """Name an output: by its query, the columns of its table and its own, as far as needed."""
    query = (name_of(name),) if several else ()
    by = (tuple(axis.column for axis in table.cells.axes),) if tables else ()
    return (*query, *by, column.name) if query or by else column.name


def _output(
    plan: Plan, table: Table, column: OutputColumn, prediction: Prediction, cell: float | None
) -> dict[str, Any]:
    """Say what to expect of one output, in a cell of so many rows."""
    step, mechanism = column.unit, mechanism_of(plan, table)
    noise = noise_of_column(column, prediction, plan.of(table))
    loadings = {str(block): loading * step for block, loading in prediction.loadings.items()}
    groups = mechanism.drawn_together(table.cells.size)
    error = prediction.std_error * step
    width = width_of(noise, loadings, mechanism, groups, 0.95, integer=column.integer)
    per = "cell"
    if prediction.per_row:
        plain = column.weights is None
        per = "1 / rows" if plain else "1 / weighted total"
        if cell is not None:
            size = f"{cell:,.6g}"
            per = f"cell of {size} rows" if plain else f"cell of weighted total {size}"
        each = column.row_step / (cell or 1)
        error, width = error * each, width * each
    return {
        "mechanism": plan.mechanism,
        "sigma": np.nan if noise is None else noise.scale * step,
        "std_error": error,
        "half_width_95": width,
        "per": per,
    }
