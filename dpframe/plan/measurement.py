"""What is measured for a release, and which of its outputs belong to which table."""

from dataclasses import dataclass

from dpframe.forks import cached_property
from dpframe.plan.calibrated import Calibrated
from dpframe.plan.columns import OutputColumn
from dpframe.plan.tables import Table
from dpframe.strategies import Design, Prediction
from dpframe.strategies.noise import members_of


@dataclass(frozen=True, eq=False)
class Measurement:
    """Integers that are measured together, with their noise.

    Parameters
    ----------
    table
        The resolved query, or all queries that are measured as one.
    calibrated
        What is measured, how it is decoded, and its noise.
    """

    table: Table
    calibrated: Calibrated

    @property
    def design(self) -> Design:
        """What is measured and how it is decoded."""
        return self.calibrated.design

    @property
    def scales(self) -> tuple[float, ...]:
        """Noise scales of the measured blocks: sigma of a Gaussian, b of a Laplace."""
        return self.calibrated.scales

    @property
    def deviations(self) -> tuple[float, ...]:
        """Standard deviations of the rounded noise of the blocks."""
        return self.calibrated.deviations

    @property
    def predictions(self) -> tuple[Prediction, ...]:
        """The errors of all outputs."""
        return self.calibrated.predictions

    @cached_property
    def shared(self) -> list[tuple[int, ...]]:
        """Blocks whose noise is drawn together: of several, or over all cells."""
        first = self.design.joined
        return [
            group
            for position, group in enumerate(self.design.groups)
            if len(group) > 1 or (first and position == 0)
        ]

    def members(self, cells: int) -> dict[int, int]:
        """Return with how many coordinates one of each block is drawn, in so many cells."""
        if cells not in self._members:
            self._members[cells] = members_of(self.design, cells)
        return self._members[cells]

    @cached_property
    def _members(self) -> dict[int, dict[int, int]]:
        return {}


@dataclass(frozen=True, eq=False)
class TablePlan:
    """One table of a release.

    Parameters
    ----------
    table
        The resolved query.
    measurement
        What is measured for it, and perhaps for other tables.
    first
        Position of its first output among those of the measurement; `None` where all are its own.
    """

    table: Table
    measurement: Measurement
    first: int | None = None

    @property
    def outputs(self) -> tuple[OutputColumn, ...]:
        """The columns released: those asked for, and the number of rows where it comes for free."""
        if self.first is not None:
            return self.table.outputs
        return self.table.outputs + (self.table.rows_column,) * self.measurement.design.extra

    @property
    def place(self) -> int:
        """Which of the tables of the measurement it is."""
        return (self.first or 0) // len(self.table.outputs)

    @property
    def own(self) -> slice:
        """Its outputs among those of the measurement."""
        first = self.first or 0
        return slice(first, first + len(self.outputs))

    def predictions(self) -> tuple[Prediction, ...]:
        """Return the error of every output column."""
        return self.measurement.predictions[self.own]
