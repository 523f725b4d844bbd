"""What a spend allows, and which mechanisms may be compared."""

from fractions import Fraction

from dpframe.arguments import is_one_of
from dpframe.declaration.facts import Declaration
from dpframe.errors import BudgetExceededError, CalibrationError
from dpframe.privacy.amounts import Budget, Spend, below, exact
from dpframe.privacy.gaussian import classical_mu, gaussian_mu, pure_of_mu
from dpframe.privacy.laplace import pure_of_rho
from dpframe.privacy.law import Allowance
from dpframe.privacy.selection import SELECT
from dpframe.public import did_you_mean
from dpframe.strategies import MECHANISMS, Mechanism

_LARGEST_SPEND = 2**100  # beyond, squares and their inverses would leave the range of floats


def candidates(mechanism: str) -> list[str]:
    """Return the names of the mechanisms to compare.

    Raises
    ------
    CalibrationError
        If the mechanism is not known.
    """
    if is_one_of(mechanism, (SELECT,)):
        raise CalibrationError(
            f'mechanism="{SELECT}" is for quantiles that are released on their own, in a call of '
            ".dp.quantile(...), not in a dict or a plan; other numbers have noise added to them. "
            'Use mechanism="auto", with which quantiles are read off numbers of rows.',
            parameter="mechanism",
            value=mechanism,
        )
    if not is_one_of(mechanism, ("auto", *MECHANISMS)):
        known = ", ".join(f'"{name}"' for name in ("auto", *MECHANISMS, SELECT))
        way = did_you_mean(mechanism, (*MECHANISMS, SELECT)).strip()
        rule = f"must be one of {known} (of quantiles alone)"
        raise CalibrationError.about("mechanism", rule, mechanism, way)
    if mechanism != "auto":
        return [mechanism]
    return [name for name, how in MECHANISMS.items() if how.automatic]


def allowance_of(spend: Spend, declaration: Declaration) -> Allowance:
    """Translate a spend into exact allowances, never above what it says."""
    ledger = declaration.ledger
    budget = None if ledger is None else ledger.budget
    amount = spend.amount
    if max(amount, exact(budget.epsilon) if budget else 0) > _LARGEST_SPEND:
        raise CalibrationError(
            "epsilon, mu and rho must be at most 2**100, also in the budget: so much allows no "
            f"noise at all; got {spend.kind}={float(amount):.3g}"
            + (f" of {budget}." if budget else "."),
            parameter=spend.kind,
            value=float(amount),
        )
    if spend.kind == "share":
        if ledger is None:
            why = "share= is a part of a budget and none is declared."
            way = "Declare budget=dpf.Budget(...), or spend epsilon=, mu= or rho=."
            raise CalibrationError(f"{why} {way}", parameter="share", value=float(amount))
        now = ledger.glance().share(amount)
        return Allowance(now.mu_squared, now.epsilon)
    least = min(amount, Fraction(float(amount)))
    if spend.kind == "epsilon":
        delta = _delta(spend, budget)
        return Allowance(Fraction(gaussian_mu(amount, delta)) ** 2, least, delta)
    if spend.kind == "rho":
        return Allowance(2 * least, Fraction(pure_of_rho(least)))
    return Allowance(least**2, Fraction(pure_of_mu(float(least) * (1 - 2.0**-52))))


def allowance_of_look(spend: Spend, declaration: Declaration) -> Allowance | None:
    """Say what a share allows that spares others; `None` where `allowance_of` does."""
    if spend.kind != "share" or declaration.ledger is None:
        return None
    status = declaration.ledger.glance()
    if status.shares == 1:  # spent by others meanwhile: the charge refuses it
        return None
    losses = status.pots.for_look(spend.amount / (1 - status.shares))
    return None if losses is None else Allowance(losses.mu_squared, losses.epsilon)


def _delta(spend: Spend, budget: Budget | None) -> float:
    """Return the delta to spend; refuse one alone that was not given for this release."""
    if spend.delta is not None:
        return spend.delta
    delta = 0.0 if budget is None else below(budget.noise_delta)
    if spend.amount == 0 and delta:
        rule = f"must be > 0 where delta is that of the budget, delta={delta:g}"
        way = "Give epsilon > 0, or give delta= in the call to spend a delta alone."
        raise CalibrationError.about("epsilon", rule, 0, way)
    return delta


def movement_allowed(mechanism: Mechanism, spend: Spend, allowance: Allowance) -> Fraction:
    """Return the most that movement may add up to."""
    if not mechanism.classical:
        return mechanism.law.movement_allowed(allowance)
    if spend.kind != "epsilon" or allowance.delta is None:
        why = f'mechanism="classical" is calibrated by epsilon= and delta=, got {spend.kind}=.'
        raise CalibrationError(why, parameter="mechanism", value="classical")
    return Fraction(classical_mu(float(spend.amount), allowance.delta)) ** 2


def nothing_allowed(name: str, allowance: Allowance) -> CalibrationError:
    """Say why a spend allows no noise of a mechanism."""
    law = MECHANISMS[name].law
    if law.needs_delta and allowance.epsilon:
        why = f'mechanism="{name}" needs delta > 0, and none is given or declared.'
        way_out = 'Give delta= (1e-6 for instance), or use mechanism="laplace".'
        return CalibrationError(f"{why} {way_out}", parameter="delta")
    when = "where delta is 0" if law.needs_delta else f"for {law.title} noise"
    way_out = "Give epsilon > 0, or delta > 0 with Gaussian noise."
    return CalibrationError.about("epsilon", f"must be > 0 {when}", 0, way_out)


def used_up(spend: Spend, declaration: Declaration) -> BudgetExceededError | None:
    """Say so where a share is nothing because other noise has used what the mechanism needs."""
    ledger = declaration.ledger
    if spend.kind != "share" or ledger is None:
        return None
    if not ledger.budget.noise_delta or ledger.status().pots.is_untouched:
        return None
    wrong = f"no Gaussian noise fits any more in what is left of {ledger.budget}:"
    why = f"epsilon={ledger.status().remaining_epsilon:.6g} is left for Laplace noise."
    way = 'Use mechanism="laplace".'
    return BudgetExceededError(f"{wrong} {why} {way}", parameter="share", value=float(spend.amount))
