"""One page that lets a person decide whether to publish: promise, numbers, ledger, what to confirm.

The page is a single file of HTML. It needs no network and no script, in no browser.
"""

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Context
from importlib import resources
from itertools import pairwise
from os import PathLike
from typing import Any

import pandas as pd

from dpframe.arguments import check_flag, check_place, no_ledger, visible
from dpframe.cells.reduce import apart
from dpframe.cells.verify import look
from dpframe.certificates.certificate import TEST, Release
from dpframe.certificates.mechanism_parts import SelectionPart, SetPart
from dpframe.certificates.words import has_noise
from dpframe.context import at_the_door
from dpframe.errors import DPFrameError, DPFrameWarning, QueryError, pip_install
from dpframe.frozen import frozen
from dpframe.html import discovery_left, floor, unit_words
from dpframe.html import percent as in_percent
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.log import Entry, Protected
from dpframe.ledger.status import BudgetStatus
from dpframe.privacy.gaussian import gaussian_epsilon
from dpframe.privacy.half_widths import check_level
from dpframe.privacy.interpretation import Guarantee
from dpframe.privacy.neighbors import Neighboring
from dpframe.public import public_call
from dpframe.reporting.cells import SideView, compare_tables, put_side_by_side
from dpframe.reporting.tables import TableView, loss_of_parts, tables_of

_USUAL_DELTA = 1e-6  # at which the epsilon of Gaussian noise is said
_PRIORS = (0.01, 0.1, 0.5)
_FALSE_POSITIVES = (0.01, 0.05, 0.1)
_MOST_ENTRIES = 50  # of a ledger that are shown
_MOST_YEARS = 3  # of releases by part of the data
_MOST_NOISE = 0.5  # of the counts and sums of a table that is worth publishing


@public_call
def report(
    released: pd.DataFrame | Sequence[pd.DataFrame] | Mapping[Any, pd.DataFrame], *,
    ledger: Ledger | None = None, title: str = "Release report",
    path: str | PathLike[str] | None = None, level: float = 0.95, percent: bool = False,
    changes: bool = False,
) -> str:  # fmt: skip
    """Write one page that says what is published, what is promised, and what a person must confirm.

    It shows

    - whether each table is what was released, and in the ledger;
    - who is protected, and what the guarantee means in odds and error rates of the best test;
    - each table with intervals, and a mark where noise may be as large as the number;
    - what is clipped, capped or left out;
    - the ledger, what only a person can confirm, and the certificates for machines.

    It shows no number of a table that is not what its certificate says.

    Somebody who knows all other rows, and believed with p that a unit is in the data, believes it
    after a release with at most ``p / (p + (1 - p) exp(-x))``; the privacy loss is above x with a
    chance of at most 1 in 1,000, and so is its negative, for the least belief. Under
    ``"add_remove"``, what its rows are is two changes: x for twice the loss. The true positive rate
    of a test is at most ``Phi(Phi^-1(a) + mu)`` for Gaussian noise (Dong, Roth and Su 2022), with a
    its false positive rate, and at most ``exp(epsilon) a + delta``.

    Parameters
    ----------
    released
        A released frame, a list of them, or a dict as `release` returns. All go on one page.
    ledger
        The ledger they were charged to: each must be in it, and all of it is shown.
    title
        Title of the page.
    path
        Where to write it; an existing file is replaced. `None`: it is only returned.
    level
        Confidence level of the intervals, in (0, 1), except those that are columns of a table.
    percent
        Whether to show counts and sums as percentages of their totals, too.
    changes
        Whether to show each table beside the one before it, with the changes by `change`. If two
        cannot be compared, the page says why.

    Returns
    -------
    str
        The page, as HTML.

    Warns
    -----
    DPFrameWarning
        If a table is not what its certificate says, or not in the ledger.

    Raises
    ------
    CertificateError
        If a frame carries no certificate that can be read.
    QueryError
        If there is no frame, or an argument is not usable.
    DPFrameError
        If Jinja2 is not installed.
    LedgerError
        If the ledger cannot be read.

    References
    ----------
    J. Dong, A. Roth and W. J. Su, "Gaussian differential privacy", JRSS B 84(1), 2022.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=0.5)
    >>> page = report(released, title="Trips by zone")
    >>> "<h1>Trips by zone</h1>" in page
    True
    """
    named = _name_frames(released)
    level = check_level(level)
    if ledger is not None and not isinstance(ledger, Ledger):
        raise no_ledger(ledger)
    if not isinstance(title, str):
        raise QueryError.about("title", "must be a text", title)
    check_flag("percent", percent)
    check_flag("changes", changes)
    if changes and len(named) == 1:
        way_out = "Give the earlier one first, and then the later one."
        raise QueryError.about("changes", "is for two tables or more", changes, way_out)
    context = at_the_door(looking=True)
    place = None if path is None else context.place(check_place(path, "a page"))
    template = _template()
    status = None if ledger is None else ledger.status()
    protected = None if ledger is None else ledger.protected
    names_by_release = {} if status is None else status.releases["name"].dropna().to_dict()
    views = [
        tables_of(name, frame, ledger, names_by_release, level, shares=percent)
        for name, frame in named
    ]
    tables = [table for of_frame in views for table in of_frame]
    sound = all(table.stamp.sound for table in tables)
    guarantees = _guarantees(tables, status, protected)
    page: str = template.render(
        title=title,
        tables=tables,
        published=[
            _published(name, frame, of_frame, level)
            for (name, frame), of_frame in zip(named, views, strict=True)
        ],
        changes=_changes(named, views, level) if changes else [],
        sound=sound,
        test=TEST if any(table.release.testing for table in tables) else "",
        written=context.now().strftime("%Y-%m-%d %H:%M UTC"),
        units=_units(tables, status),
        how=_how(tables),
        guarantees=guarantees,
        presence=any(len(row.questions) > 1 for row in guarantees),
        priors=_PRIORS,
        false_positives=_FALSE_POSITIVES,
        ledger=None if status is None else _history(status, tables),
        checks=_checks(tables, ledger),
    )
    if place is not None:
        place.write_text(page, encoding="utf-8", newline="\n")
    if not sound:
        wrong = ", ".join(table.name for table in tables if not table.stamp.sound)
        warnings.warn(
            f"the report says not to publish as it is: see the stamps of {visible(wrong)}.",
            DPFrameWarning,
            stacklevel=3,  # past the wrapper of its keywords
        )
    return page


@frozen
class _Published:
    """A frame that is published: what it is called, its releases, perhaps side by side."""

    name: str
    views: Sequence[TableView]
    side: SideView | None

    @property
    def alike(self) -> bool:
        """Whether the same was declared about all of its releases."""
        return all(view.facts == self.views[0].facts for view in self.views)

    @property
    def noise_alone(self) -> tuple[int, int]:
        """How many counts and sums may be noise alone, and how many are shown."""
        drowned, shown = zip(*(view.noise_alone for view in self.views), strict=True)
        return sum(drowned), sum(shown)

    @property
    def is_noisy(self) -> bool:
        """Whether most counts and sums may be noise alone."""
        drowned, shown = self.noise_alone
        return drowned > _MOST_NOISE * shown


def _published(
    name: str | None, frame: pd.DataFrame, views: Sequence[TableView], level: float
) -> _Published:
    """Gather what is shown of a frame."""
    if len(views) == 1:
        return _Published(views[0].name, views, None)
    queries = (view.release.query for view in views)
    called = name or ", ".join(dict.fromkeys(query.name or query.words for query in queries))
    if not views[0].stamp.sound or any(view.has_percent for view in views):
        return _Published(called, views, None)
    tables = apart(look(frame))
    return _Published(called, views, put_side_by_side(views[0].carried, tables, level))


def _name_frames(released: object) -> list[tuple[str | None, pd.DataFrame]]:
    """Return frames with the names they were given, if any."""
    named: list[tuple[str | None, Any]] = []
    if isinstance(released, Mapping):
        named = [(str(name), frame) for name, frame in released.items()]
    elif isinstance(released, Sequence | pd.DataFrame) and not isinstance(released, str):
        frames = [released] if isinstance(released, pd.DataFrame) else released
        named = [(None, frame) for frame in frames]
    if not named or not all(isinstance(frame, pd.DataFrame) for _, frame in named):
        rule = "must be a released frame, or a list or dict of one or more of them"
        raise QueryError.about("released", rule, released)
    return named


def _changes(
    named: Sequence[tuple[str | None, pd.DataFrame]],
    views: Sequence[Sequence[TableView]],
    level: float,
) -> list[SideView]:
    """Compare each table with the one before it, if both are what they are said to be."""
    pairs = pairwise(zip((frame for _, frame in named), views, strict=True))
    return [
        compare_tables((theirs[0].name, ours[0].name), before, now, level)
        for (before, theirs), (now, ours) in pairs
        if theirs[0].stamp.sound and ours[0].stamp.sound
    ]


def _template() -> Any:
    """Return the page to be filled in; what is filled in is escaped and made visible."""
    try:
        from jinja2 import Environment, StrictUndefined  # optional
    except ImportError:
        raise DPFrameError(f"a report needs Jinja2: {pip_install('report')}.") from None
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    page = resources.files("dpframe.reporting").joinpath("page.html")
    return environment.from_string(page.read_text(encoding="utf-8"))


def _units(tables: Sequence[TableView], status: BudgetStatus | None) -> list[tuple[str, list[str]]]:
    """Say who is protected, once for tables that protect the same: who, and against what."""
    names_by_unit: dict[tuple[str, str], list[str]] = {}
    for table in tables:
        release = table.release
        who = _who(release.privacy_unit.columns)
        names_by_unit.setdefault((who, release.neighboring), []).append(table.name)
    several = len(names_by_unit) > 1
    part = status.chain.part if status is not None and status.chain else None
    return [
        (f"{who}{' (' + ', '.join(names) + ')' if several else ''}", [_against(relation, part)])
        for (who, relation), names in names_by_unit.items()
    ]


def _who(columns: Sequence[str]) -> str:
    """Say who is protected."""
    if len(columns) > 1:
        return f"all rows of {unit_words(columns)}"
    return f"all rows with one value of '{columns[0]}' together" if columns else "one row"


def _against(relation: str, part: str | None) -> str:
    """Say what is hidden of a unit; by replacement, what its part of the data is, is not."""
    if relation == "add_remove":
        return (
            "The numbers are nearly as likely with the unit as without it: they hide whether it is "
            "in the data at all, and so all that the data say of it."
        )
    same, public = (f" of the same {part}", f", but not its {part}") if part else ("", "")
    return (
        f"The numbers are nearly as likely with the unit as with any other{same} in its place: "
        f"they hide all that the data say of it{public}. How many units there are is public."
    )


@frozen
class _Row:
    """What one guarantee means: of each question, least and most beliefs, and true positives."""

    name: str
    cost: Sequence[str]
    questions: Sequence[tuple[str, Sequence[tuple[str, str]], Sequence[str]]]


def _guarantees(
    tables: Sequence[TableView], status: BudgetStatus | None, protected: Protected | None
) -> list[_Row]:
    """Say what each release of sound tables means, and the whole ledger."""
    releases: dict[str, list[TableView]] = {}
    for table in tables:
        if not table.stamp.sound:
            continue  # its promise may be made up
        releases.setdefault(table.release.release_id, []).append(table)
    rows = []
    for of_release in releases.values():
        first = of_release[0].release
        names = ", ".join(dict.fromkeys(table.name for table in of_release))
        joint = ["shared by all queries released together"] * first.privacy_loss.joint
        guarantee = _guarantee(first)
        promise = [*_amounts_of(guarantee), *joint]
        rows.append(_row(names, promise, guarantee, first.neighboring))
    if status is not None:
        budget = status.budget
        part = status.chain.part if status.chain else None
        per_part = f" per {part}" if part else ""
        promise = [f"({budget.epsilon:g}, {budget.delta:g})-differentially private{per_part}"]
        relation = (protected or tables[0].release).neighboring  # tables may be of other ledgers
        others = "others"
        if part and relation == "replace":
            promise.append(f"for units of the same {part}, which is not hidden")
            others = f"others of the same {part}"
        name = "everything charged to the ledger, now and later"
        guarantee = Guarantee(float(budget.epsilon), float(budget.delta))
        rows.append(_row(name, promise, guarantee, relation, others))
        if part:
            rows += _of_years(status, relation)
    return rows


def _of_years(status: BudgetStatus, relation: Neighboring) -> list[_Row]:
    """Say what somebody loses who is in every part of the data that a year released of."""
    part = status.chain.part if status.chain else None
    by_year: dict[str, list[Entry]] = {}
    for entry in status.entries:
        by_year.setdefault(entry.released_at[:4], []).append(entry)
    rows = []
    for year, entries in list(by_year.items())[-_MOST_YEARS:]:
        times = len({entry.part for entry in entries} - {None})
        guarantee = loss_of_parts(entries, max(times, 1))
        if guarantee is not None and times > 1:
            name = f"all releases of {year}, for somebody in all {times} of their parts by {part}"
            promise = [*_amounts_of(guarantee), "if amounts were settled before the first answer"]
            rows.append(_row(name, promise, guarantee, relation))
    return rows


def _amounts_of(guarantee: Guarantee) -> list[str]:
    """Say an epsilon and a delta; where mu alone is known, those at a usual delta."""
    epsilon, delta, notes = guarantee.epsilon, guarantee.delta, []
    if math.isinf(epsilon):
        epsilon = gaussian_epsilon(_USUAL_DELTA, guarantee.mu)
        delta = _USUAL_DELTA + guarantee.extra_delta
        notes = ["Gaussian noise: each delta has an epsilon of its own"]
    return [f"({_most(epsilon)}, {_most(delta)})-differentially private", *notes]


def _most(amount: float) -> str:
    """Show an amount with four digits, rounded up."""
    shown = Context(prec=4, rounding=ROUND_CEILING).create_decimal(repr(float(amount)))
    return f"{float(shown):g}"


def _guarantee(release: Release) -> Guarantee:
    loss = release.privacy_loss
    guarantee = Guarantee(mu=loss.mu, extra_delta=loss.extra_delta)
    if loss.epsilon is None or loss.delta is None:
        return guarantee
    return guarantee._replace(epsilon=loss.epsilon, delta=loss.delta)


def _row(
    name: str, cost: list[str], guarantee: Guarantee, relation: str, others: str = "others"
) -> _Row:
    """Say what is known between neighbors, and under add_remove between two changes, too."""
    asks_rows = f"does it have these rows, or {others}?"
    guarantees = {asks_rows: guarantee}
    if relation == "add_remove":
        guarantees = {"is it in the data?": guarantee, asks_rows: guarantee.twice()}
    questions = []
    for question, promise in guarantees.items():
        beliefs = [(_down(promise.least(p)), _up(promise.belief(p))) for p in _PRIORS]
        powers = [_up(promise.power(rate)) for rate in _FALSE_POSITIVES]
        questions.append((question, beliefs, powers))
    return _Row(name, cost, questions)


def _up(probability: float) -> str:
    """Show a bound, rounded up to a tenth of a percent."""
    return f"{-(-1000 * probability // 1) / 10:.1f} %"


def _down(probability: float) -> str:
    return f"{1000 * max(probability, 0.0) // 1 / 10:.1f} %"


def _history(status: BudgetStatus, tables: Sequence[TableView]) -> dict[str, object]:
    """Return what is shown of a ledger: amounts, the fullest parts, and the latest entries."""
    releases = status.releases
    ours, lost = {table.release.release_id for table in tables}, status.lost
    parts, fullest = releases["part"].to_list(), status.parts["used"].iloc[:_MOST_ENTRIES]
    latest: Iterable[Any] = releases.iloc[-_MOST_ENTRIES:][::-1].itertuples()
    entries = [
        {
            "ours": row.Index in ours,
            "lost": row.Index in lost,
            "when": row.released_at.replace("T", " ").replace("+00:00", " UTC"),
            "name": row.name or "",
            "note": row.note or "",
            "frame": row.frame or "",
            "what": row.what,
            "mechanism": row.mechanism if row.share > 0 or row.part else "none",
            "part": in_percent(row.share if row.share > 0 else row.part),
            "is_share": row.share > 0,
        }
        for row in latest
    ]
    # without amounts of noise, of which a reader of the page makes none
    share = f"{floor(100 * status.remaining_share)} % of the budget"
    left = "; ".join(filter(None, (share, discovery_left(status))))
    left = status.left if status.moved_to else left
    return {
        "lines": [status.words.split("\n")[0], f"Spent {status.used_words}", f"Left {left}"],
        "by": status.chain and status.chain.part,
        "parts": [(str(part), in_percent(used)) for part, used in fullest.items()],
        "other_parts": len(status.parts) - len(fullest),
        "entries": entries,
        "hidden": len(parts) - len(entries),
    }


def _how(tables: Sequence[TableView]) -> str:
    """Say what was done to exact numbers."""
    releases = [table.release for table in tables]
    kinds = [type(release.mechanism) for release in releases]
    texts = {
        "Noise was added to exact totals before anybody saw them.": any(map(has_noise, releases)),
        "Labels were published by noisy totals that nobody saw.": SetPart in kinds,
        "Quantiles were selected at random, those near the exact ones being the likelier.": (
            SelectionPart in kinds
        ),
        "Numbers that the protection does not have to hide are exact.": any(
            kind not in (SelectionPart, SetPart) and not has_noise(release)
            for kind, release in zip(kinds, releases, strict=True)
        ),
    }
    return " ".join(text for text, is_so in texts.items() if is_so)


def _checks(tables: Sequence[TableView], ledger: Ledger | None) -> list[str]:
    """List what only a person can confirm."""
    releases = [table.release for table in tables]
    units = {release.privacy_unit.columns for release in releases}
    checks = list(map(_about_unit, sorted(units)))
    sources = {grouping.source for release in releases for grouping in release.query.by}
    if sources - {"discovered", "found"}:
        checks.append("The groups were known beforehand, and not read off these data.")
    if any(len(part.columns) == 1 for release in releases for part in release.columns):
        checks.append("Bounds were chosen without looking at these data.")
    if units != {()}:
        checks.append("Caps on rows were chosen without looking at these data.")
    checks.append("Conditions and questions were not chosen by looking at the exact numbers.")
    if ledger is not None:
        others = "are charged to this ledger, and there is no other copy."
        checks.append(f"All releases about these people {others}")
    else:
        others = "or all of them together are acceptable: no ledger was given for this page."
        checks.append(f"No other release is about these people, {others}")
    if any(map(has_noise, releases)):
        checks.append("The numbers are used with their intervals, which are about noise alone.")
    if any(isinstance(release.mechanism, SelectionPart) for release in releases):
        checks.append("Selected values are used as such: they have no intervals.")
    return [
        *checks,
        "What is left out and cut off, as listed with each table, is acceptable for this use.",
        "The exact data, and who may see them, are kept as safely as before.",
        "A harm that does not depend on any one person is acceptable: what the tables show of "
        "groups is not hidden.",
    ]


def _about_unit(columns: Sequence[str]) -> str:
    """Say what a person has to confirm of a privacy unit."""
    if not columns:
        return "Each row stands for another person, and nobody has more than one."
    if len(columns) == 1:
        return f"Nobody has rows under more than one value of '{columns[0]}'."
    return f"It is enough to protect {unit_words(columns)}: less than a person in one."
