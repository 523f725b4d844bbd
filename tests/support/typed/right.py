"""A small project of a user, typed strictly: type checkers find nothing wrong with it."""

from typing import assert_type

import pandas as pd

import dpframe as dpf

BUDGET = dpf.Budget(epsilon=9, delta=1e-5, discovery=1e-6)

trips = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [9.5, 20.0, 7.0]})


def publish(frame: pd.DataFrame, ledger: dpf.Ledger) -> dict[str, pd.DataFrame]:
    private = dpf.DPAccessor(frame)
    private.declare(
        keys={"zone": ["A", "B"]},
        bounds={"fare": (0, 100)},
        privacy_unit=dpf.EACH_ROW,
        ledger=ledger,
    )
    return private.release(
        {"n": dpf.count("zone"), "fare": dpf.mean("fare", "zone", where="fare > 0")},
        share=0.25,
        mechanism="laplace",
        name="2024-03",
    )


assert_type(publish(trips, dpf.Ledger(budget=BUDGET))["n"], pd.DataFrame)


@dpf.declares(bounds={"fare": (0, 100)}, privacy_unit=dpf.EACH_ROW, max_rows=None)
def load(rows: int) -> pd.DataFrame:
    return trips.head(rows)


assert_type(load(2), pd.DataFrame)

private = dpf.DPAccessor(trips)
by_zone = private.count("zone", epsilon=0.5, mechanism="laplace", max_rows=None)
assert_type(by_zone, dpf.DataFrame)
assert_type(private.sum(["fare"], by=["zone"], bounds=(0, 100), epsilon=0.1), dpf.DataFrame)
assert_type(
    private.aggregate("zone", n=dpf.count(), m=dpf.mean("fare"), epsilon=0.1), dpf.DataFrame
)
assert_type(private.release(dpf.count("zone"), epsilon=0.5), dpf.DataFrame)
assert_type(private.discover("zone", epsilon=1, delta=1e-6, dtype="string"), dpf.DataFrame)
assert_type(private.plan(dpf.mean("fare"), epsilon=1, rows=2_000).table, pd.DataFrame)

queries: dict[str, dpf.Query] = {"n": dpf.count(), "units": dpf.units("zone")}
assert_type(dpf.release(trips, queries, epsilon=1, denoise="auto"), dict[str, pd.DataFrame])
assert_type(dpf.release(trips, dpf.units(), epsilon=1, delta=None), pd.DataFrame)
assert_type(private.plan(queries, epsilon=9, within={("n", "count"): 3.0}).table, pd.DataFrame)

released = dpf.DPAccessor(by_zone)
assert_type(released.certificate, dpf.Certificate)
assert_type(released.interval(0.9, simultaneous=True), dpf.DataFrame)
certificate = dpf.verify(by_zone)
assert_type(certificate, dpf.Certificate)
assert isinstance(certificate, dpf.Certificate)
assert_type(certificate.privacy_loss.mu, float)
assert_type(released.denoise("posterior", total=3), dpf.DataFrame)

known = dpf.DataFrame(trips)  # a frame of pandas, whose .dp type checkers know
assert_type(known.dp, dpf.DPAccessor)
counted = known.dp.count("zone", keys=["A"], epsilon=0.5)
assert_type(counted.dp.round(1).dp.interval(), dpf.DataFrame)
plain: pd.DataFrame = known
assert type(plain).__module__.startswith("pandas")
