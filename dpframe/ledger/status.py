"""What is spent of a budget and what is left, as numbers, tables and words."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction

import pandas as pd

from dpframe.arguments import visible
from dpframe.errors import BudgetExceededError
from dpframe.frozen import frozen
from dpframe.html import (
    budget_html,
    budget_text,
    discovery_left,
    floor,
    noise_left,
    percent,
    share_left,
)
from dpframe.ledger.chain import Chain
from dpframe.ledger.log import Entry, Log
from dpframe.ledger.parts import Part
from dpframe.privacy import amounts
from dpframe.privacy.amounts import Budget, PrivacyLoss, below, check_loss, check_positive
from dpframe.privacy.pots import Pots, shorten

_MOST_SHOWN = 20  # latest releases
_MOST_NAMED, _LONGEST_SHOWN = 3, 40  # in an error: releases, and characters of one
_FIRST = ("released_at", "what", "mechanism")
_TEXTS = ("name", "frame", "unit", "columns", "user", "note")


@frozen(slots=True)
class BudgetStatus:
    """What is spent of a budget and what is left.

    Parameters
    ----------
    budget
        The total: a promise about everything released, however amounts were chosen.
    log
        What was charged to it.
    pots
        What decides whether a release fits, as filled by them.
    shares
        Sum of the shares among them.
    of_part
        The part of the data that this is about; `None`: all of it.
    chain
        The ledger, where every part of the data has a budget.
    moved_to
        Where the ledger was moved, after which nothing more is charged to it here.
    """

    budget: Budget
    log: Log
    pots: Pots
    shares: Fraction
    of_part: Part | None = None
    chain: Chain | None = field(default=None, repr=False, compare=False)
    moved_to: str | None = field(default=None, compare=False)

    @classmethod
    def of(cls, chain: Chain, part: Part | None = None) -> "BudgetStatus":
        """Return the status of a ledger as it is known so far, or that of a part of the data."""
        pots, shares = chain.filled_by(part)
        by_part = None if chain.part is None else chain
        return cls(chain.budget, chain.log, pots, shares, part, by_part, chain.moved_to)

    @property
    def parts(self) -> pd.DataFrame:
        """One row per part to which something was charged alone, the fullest first.

        Columns are `used`, the part of its budget that is used; what was spent, as `epsilon`, `mu`
        and `delta`; and `shares`. Releases over all parts count in every row. There are no rows
        where the ledger has one budget for everything.
        """
        chain = self.chain
        states = [] if chain is None else [(part, chain.filled_by(part)) for part, _ in chain.parts]
        otherwise = {entry.part for entry in self.log.entries if not entry.share}
        rows = []
        for part, (pots, shares) in states:
            in_shares = otherwise.isdisjoint({None, part})
            used = shares if in_shares else pots.used
            rows.append({"used": float(used), **_amounts(pots.spent), "shares": float(shares)})
        label = None if chain is None else chain.part
        index = pd.Index([part for part, _ in states], name=label, dtype=object)
        columns = ["used", *_amounts(PrivacyLoss()), "shares"]
        table = pd.DataFrame(rows, index, columns, dtype=float)
        return table.sort_values("used", ascending=False, kind="stable")

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The releases, in order."""
        if self.of_part is None:
            return self.log.entries
        return tuple(entry for entry in self.log.entries if entry.part in (None, self.of_part))

    @property
    def lost(self) -> frozenset[str]:
        """The releases that were given up: what they drew is lost, and what they cost spent."""
        return frozenset(mark.release_id for mark in self.log.marks if mark.what == "lost")

    @property
    def losses(self) -> tuple[PrivacyLoss, ...]:
        """Losses of the releases."""
        return tuple(entry.loss for entry in self.entries)

    @property
    def spent(self) -> PrivacyLoss:
        """Sums of what was spent, as pure epsilons, squares of mu, and extra deltas.

        Where amounts were chosen after seeing answers, these sums promise nothing; the budget
        does.
        """
        return self.pots.spent

    @property
    def used(self) -> float:
        """Part of the budget that is used, in [0, 1].

        It is the sum of shares where every release asked for one, or else by the pot with most
        left.
        """
        return float(self._used)

    @property
    def _used(self) -> Fraction:
        in_shares = self.shares and all(entry.share for entry in self.entries)
        return self.shares if in_shares else self.pots.used

    @property
    def remaining_mu(self) -> float:
        """Largest mu of a further Gaussian release."""
        return amounts.root_below(self.pots.largest.mu_squared)

    @property
    def remaining_rho(self) -> float:
        """Largest rho of a further Gaussian release, mu^2 / 2."""
        return below(self.pots.largest.mu_squared / 2)

    @property
    def remaining_epsilon(self) -> float:
        """Largest epsilon of a further Laplace release."""
        return below(self.pots.largest.epsilon)

    @property
    def remaining_delta(self) -> float:
        """What is left of the budget's `discovery`, the delta to find groups with."""
        return below(self.pots.spare_delta)

    @property
    def remaining_share(self) -> float:
        """Part of the budget that is left, in [0, 1], and below 1 after any spend.

        It is what is not `used`, and no more than shares so far leave of 1. A share of this size
        fits; `largest_share` takes all that is left.
        """
        return min(self.largest_share, below(1 - self._used))

    @property
    def largest_share(self) -> float:
        """Largest share of a further release, 1 less the shares so far; it takes all that is left.

        A share is a part of what is left, so it is not made smaller by spends in other ways; what
        it costs is. It is of the kinds of noise of which something fits: `remaining_mu` or
        `remaining_epsilon` is above 0. 0 if nothing fits any more.
        """
        return below(1 - self.shares) if any(self.pots.largest) else 0.0

    def share(self, amount: amounts.Amount) -> PrivacyLoss:
        """Say what a share costs now: epsilon of Laplace noise, or mu^2 of Gaussian noise.

        It is the part ``s / (1 - shares so far)`` of what is left for its kind. So n shares of 1/n
        of one kind are equal and fill its pot exactly, and shares of one kind fit as long as they
        add up to at most 1. Shares of both kinds do while something is left for both: late in a
        budget nothing may be left for one of them, and `remaining_mu` or `remaining_epsilon` is 0.
        Spends in other ways leave smaller shares.

        Parameters
        ----------
        amount
            The share s, in (0, 1].

        Returns
        -------
        PrivacyLoss
            Both costs, of which a release has one; 0 for a kind of which nothing fits.

        Raises
        ------
        BudgetExceededError
            If the shares would add up to more than 1, or nothing is left.
        CalibrationError
            If the share is out of range.
        """
        amount = check_positive("share", amount)
        left = self.pots.for_shares
        if amount > 1 - self.shares or not any(left):
            raise _exceeded(self, f"share={float(amount):.6g}", "share", amount)
        part = self.part_of_rest(amount)
        parts = (part * left.epsilon, part * left.mu_squared)
        return PrivacyLoss(*(shorten(amount, math.floor) for amount in parts))

    def part_of_rest(self, share: Fraction) -> Fraction:
        """Return which part of what is left a share is now."""
        return share / (1 - self.shares)

    def part(self, loss: PrivacyLoss) -> float:
        """Part of the budget that a release takes, of the pot with most left; they add up.

        Parameters
        ----------
        loss
            What a release that was charged costs.

        Raises
        ------
        CalibrationError
            If it is not a `PrivacyLoss` of exact parts >= 0.
        """
        return self._parts([check_loss(loss)])[0]

    def part_and_used(self, entry: Entry) -> tuple[float, float]:
        """Return the share of a release and the sum of shares; or its part, and what is used."""
        if entry.share:
            return float(entry.share), float(self.shares)
        return self.part(entry.loss), float(self.pots.used)

    def _parts(self, losses: Sequence[PrivacyLoss]) -> list[float]:
        emptiest = self.pots.emptiest
        if emptiest is None:
            return [float(loss != PrivacyLoss()) for loss in losses]
        pot, *_ = emptiest
        # a live pot has a price for all that was charged
        return [float((pot.price(loss) or 0) / pot.limit) for loss in losses]

    @property
    def releases(self) -> pd.DataFrame:
        """One row per release, with when, what, by whom, and at what cost.

        `share` is the share that was asked for; `part`, where there is none, the part of the budget
        that the release takes.
        """
        texts, by_part = (*_FIRST, *_TEXTS), self.chain is not None
        parts = self._parts([entry.loss for entry in self.entries])
        rows = [
            {
                "share": float(entry.share or "nan"),
                "part": float("nan") if entry.share else part,
                **_amounts(entry.loss),
                **{name: getattr(entry, name) for name in texts},
                **({"of_part": entry.part} if by_part else {}),
            }
            for entry, part in zip(self.entries, parts, strict=True)
        ]
        numbers = dict.fromkeys(("share", "part", *_amounts(PrivacyLoss())), float)
        columns = [*_FIRST, *numbers, *_TEXTS, *["of_part"] * by_part]
        released = [entry.release_id for entry in self.entries]
        index = pd.Index(released, name="release_id", dtype=object)
        return pd.DataFrame(rows, index=index, columns=columns, dtype=object).astype(numbers)

    def _repr_html_(self) -> str:
        """Show the budget in a notebook."""
        return budget_html(self, self._whose)

    @property
    def left(self) -> str:
        """What still fits, in words, rounded down."""
        if self.moved_to is not None:
            return f"nothing here: the ledger was moved to {visible(self.moved_to)}"
        return "; ".join(filter(None, (_fits(self, 4), discovery_left(self))))

    @property
    def words(self) -> str:
        """What is spent and left, in three lines."""
        return (
            f"Budget     {budget_text(self.budget)}{self._whose}\n"
            f"Spent      {self.used_words}: {describe(self.spent)}\n"
            f"Remaining  {self.left}"
        )

    @property
    def used_words(self) -> str:
        """What is used, in words: shares, or parts of the budget; these do not add up."""
        others = [entry.loss for entry in self.entries if not entry.share]
        part = f"{percent(sum(self._parts(others)))} of the budget"
        if not self.shares:
            return part
        shares = f"{percent(self.shares)} of the budget in shares"
        return f"{shares}, and {part} otherwise" if others else shares

    @property
    def _whose(self) -> str:
        """Say of what this is the budget, where every part of the data has one."""
        if self.chain is None:
            return ""
        if self.of_part is not None:
            return visible(f" for {self.chain.part}={self.of_part!r}")
        column = self.chain.part
        return visible(f" for every {column}; what follows fits every one of them")

    def __repr__(self) -> str:
        """Show the budget as a short table."""
        lines = [self.words]
        hidden = (self.log.releases if self.of_part is None else len(self.entries)) - _MOST_SHOWN
        if hidden > 0:
            lines.append(f"  {hidden} earlier releases; .releases lists all")
        latest = self.log.latest_of(self.of_part, _MOST_SHOWN)
        lost = self.lost
        for entry in latest:
            gone = ", lost" if entry.release_id in lost else ""
            lines.append(f"{self._line(entry)}{gone}")
        return "\n".join(lines)

    def _line(self, entry: Entry) -> str:
        name = "" if entry.name is None else f"{entry.name!r}, "
        part = f"{percent(self.part(entry.loss))} of the budget"
        if entry.share:
            part = f"share {percent(entry.share)}"
        query = f"{name}{entry.what}: {entry.mechanism}"
        return f"  {entry.released_at}  {query}, {part}, {describe(entry.loss)}"


def refusal(left: BudgetStatus, entry: Entry) -> BudgetExceededError:
    """Say that a release does not fit, and what would."""
    loss, spend = entry.loss, entry.spend
    if not left.pots.fits_delta(loss):
        return BudgetExceededError(
            f"this release needs an extra delta={float(loss.delta):.6g}, and "
            f"delta={floor(left.remaining_delta, 6)} is left for such in {left.budget}. How much "
            "of delta is kept for them is settled when the ledger is made: "
            "dpf.Budget(epsilon, delta, discovery=...).",
            parameter="discovery",
        )
    gaussian = loss.mu_squared and not left.pots.spare.mu_squared
    remedy = 'What is left holds Laplace noise alone: take mechanism="laplace".' if gaussian else ""
    return _exceeded(left, describe(loss), spend.kind, spend.amount, remedy)


def _exceeded(
    left: BudgetStatus, needed: str, kind: str, amount: Fraction, remedy: str = ""
) -> BudgetExceededError:
    """Say what does not fit, what does, and what was released under that budget last."""
    remedy = remedy or "Spend less: a budget is fixed once its ledger is made."
    if not any(left.pots.largest):
        remedy = "Nothing is left: less than a billionth of a budget counts as nothing."
    latest = left.log.latest_of(left.of_part, _MOST_NAMED)
    if latest:
        *before, last = latest
        names = (entry.name or entry.what.split()[0].rstrip(":") for entry in before)
        listed = ", ".join(f"{name:.20}" for name in names)
        earlier = f", after {listed}" if listed else ""
        query = last.name or textwrap.shorten(last.what, _LONGEST_SHOWN, placeholder=" ...")
        release = f"{query:.{_LONGEST_SHOWN}}, {last.released_at}{earlier}"
        remedy = f"{remedy.split(':')[0]}. Run twice? Released last: {release}."
    whose = "" if left.of_part is None else f" for part={left.of_part!r}"
    reason = f"{needed} does not fit in what is left of {left.budget}{whose}."
    text = f"{reason} Left: {_fits(left, 6)}. {remedy}"
    return BudgetExceededError(text, parameter=kind, value=amount)


def describe(loss: PrivacyLoss) -> str:
    """Say a loss in words."""
    parts = [f"epsilon={float(loss.epsilon):.6g}"] if loss.epsilon else []
    parts += [f"mu={loss.mu:.6g}"] if loss.mu_squared else []
    parts += [f"delta={float(loss.delta):.6g}"] if loss.delta else []
    return ", ".join(parts) or "nothing"


def _fits(left: BudgetStatus, digits: int) -> str:
    """Say which part of the budget is left, and what takes all of it."""
    rounded_down = math.floor(amounts.exact(left.remaining_share) * 1000) / 10
    part = f"{rounded_down:.1f}% of the budget"
    noise = ", ".join(noise_left(left, digits))
    takes = "; ".join(filter(None, (noise, share_left(left, digits))))
    return f"{part}: {takes}" if takes else part


def _amounts(loss: PrivacyLoss) -> dict[str, float]:
    """Give the amounts of a loss; NaN for none: an epsilon of 0 would be a promise."""
    shown = {"epsilon": float(loss.epsilon), "mu": loss.mu, "delta": float(loss.delta)}
    return {name: amount or float("nan") for name, amount in shown.items()}
