"""Methods of `.dp` that release what is measured over many cells at once."""

from collections.abc import Hashable, Iterable, Sequence

import pandas as pd

from dpframe.calls import with_keywords_of_methods
from dpframe.denoise.methods import DenoiserName
from dpframe.engines import Frame
from dpframe.operations.release import release
from dpframe.privacy.exact import Amount
from dpframe.privacy.neighbors import EachRow
from dpframe.queries import asking_margins
from dpframe.queries.asking_margins import MarginBins, MarginOther, MarginPart, MarginWeights
from dpframe.queries.kinds import Columns, Keys
from dpframe.strategies import MechanismName


@with_keywords_of_methods
class TogetherMethods:
    """Releases of several tables, or of many cells, that agree."""

    _frame: Frame

    def margins(
        self,
        /,
        columns: Columns | Iterable[Sequence[Hashable]],
        ways: int | None = None,
        *,
        where: str | None = None,
        keys: Keys = None,
        bins: MarginBins = None,
        other: MarginOther = None,
        weights: MarginWeights = None,
        max_rows: int | None = None,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        mu: Amount | None = None,
        rho: Amount | None = None,
        share: Amount | None = None,
        mechanism: MechanismName = "auto",
        denoise: DenoiserName | None = None,
        graph: object = None,
        name: str | None = None,
        note: str | None = None,
        privacy_unit: EachRow | None = None,
        **named: MarginPart,
    ) -> dict[tuple[Hashable, ...], pd.DataFrame]:
        """Release tables by several sets of columns that agree; see `dpframe.margins`."""
        query = asking_margins.margins(
            columns,
            ways,
            where=where,
            keys=keys,
            bins=bins,
            other=other,
            weights=weights,
            max_rows=max_rows,
            **named,
        )
        released: dict[tuple[Hashable, ...], pd.DataFrame] = release(
            self._frame,
            query,
            epsilon=epsilon,
            delta=delta,
            mu=mu,
            rho=rho,
            share=share,
            mechanism=mechanism,
            denoise=denoise,
            graph=graph,
            name=name,
            note=note,
            privacy_unit=privacy_unit,
        )
        return released
