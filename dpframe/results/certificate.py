"""The privacy certificate of a released frame: plain JSON in `attrs`, with a digest of the values.

A certificate in `attrs` is a claim, since pandas carries `attrs` through nearly every operation.
The digest over index, columns, values and the claim itself is what binds the two.
"""

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from dpframe.errors import CertificateError
from dpframe.html import certificate_html
from dpframe.ledger.ledger import Ledger
from dpframe.results.recorded import check_recorded

__all__ = [
    "ATTRIBUTE",
    "FORMAT",
    "Certificate",
    "attach",
    "certificate_of",
    "digest",
    "pack",
    "unpack",
    "verify",
]

ATTRIBUTE = "dpframe"
FORMAT = 1


class Certificate:
    """What was promised about a released frame.

    Parameters
    ----------
    record
        The certificate as plain JSON.
    """

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._record = dict(record)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain JSON."""
        copied: dict[str, Any] = json.loads(json.dumps(self._record, default=str))
        return copied

    def __getitem__(self, key: str) -> Any:
        return self._record[key]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certificate) and self._record == other._record

    __hash__ = None  # type: ignore[assignment]  # holds a dict

    @property
    def state(self) -> str:
        """What a verified frame is: "released", or "post-processed" by steps that are listed."""
        return "post-processed" if self._record["steps"] else "released"

    @property
    def columns(self) -> list[dict[str, Any]]:
        """Facts about each released column, in order."""
        columns: list[dict[str, Any]] = self._record["columns"]
        return columns

    def __repr__(self) -> str:
        """Show the promise in words."""
        record = self._record
        loss = record["privacy_loss"]
        lines = [
            f"Certificate {record['release_id']} ({record['library']}, {record['released_at']})",
            f"  query         {record['query']['words']}",
            f"  privacy unit  {_unit_in_words(record)}",
            f"  neighbors     {record['neighboring']}",
            f"  mechanism     {record['mechanism']['title']} noise on exact integers",
            f"  privacy loss  {_loss_in_words(loss)}",
            *(_column_in_words(column) for column in record["columns"]),
        ]
        if record["ledger"]:
            lines.append(
                f"  ledger        {record['ledger']['id']}: {_spent_in_words(record['ledger'])}"
            )
        lines += [f"  afterwards    {_step_in_words(step)}" for step in record["steps"]]
        lines.append(f"  digest        {record['digest']}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Show the promise as tables in a notebook."""
        return certificate_html(self._record)


def _unit_in_words(record: Mapping[str, Any]) -> str:
    unit = record["privacy_unit"]
    if unit["column"] is None:
        return "one row"
    caps = ", ".join(f"{name}={value}" for name, value in unit["caps"].items() if value is not None)
    return f"all rows of one {unit['column']!r}, {caps}"


def _loss_in_words(loss: Mapping[str, Any]) -> str:
    epsilon = (
        "any delta > 0"
        if loss["epsilon"] is None
        else f"({loss['epsilon']:.6g}, {loss['delta']:g})-DP"
    )
    return f"{epsilon}, mu={loss['mu']:.6g}" + (
        ", shared by all queries released together" if loss["joint"] else ""
    )


def _spent_in_words(ledger: Mapping[str, Any]) -> str:
    epsilon, delta = ledger["budget"]["epsilon"], ledger["budget"]["delta"]
    return (
        f"{ledger['part']:.3g} of the budget, epsilon={epsilon:g} at delta={delta:g}; "
        f"{ledger['used']:.3g} used by then"
    )


def _column_in_words(column: Mapping[str, Any]) -> str:
    error = column["std_error"]
    unit = "" if column.get("times") is None else " s"
    shown = "one for each row" if error is None else f"{error:.6g}{unit}"
    about = "" if column["column"] is None else f" of {column['column']}, bounds {column['bounds']}"
    return f"  column        {column['name']}: {column['kind']}{about}, standard error {shown}"


def _step_in_words(step: Mapping[str, Any]) -> str:
    if step["method"] == "none":
        return f"{step['into']}: no denoiser is expected to help, values as released"
    gain = step["tried"].get(step["method"])
    expected = "" if gain is None else f", expected to remove {gain:.0%} of the squared error"
    how = " (chosen automatically)" if step["asked"] == "auto" else ""
    members = ", ".join(step["members"])
    method = f"the average of {members}" if len(step["members"]) > 1 else members
    return f"{step['into']}: {step['column']} denoised by {method}{how}{expected}"


def attach(frame: pd.DataFrame, record: Mapping[str, Any]) -> pd.DataFrame:
    """Put a certificate on a released frame, with the digest of both."""
    frame.attrs[ATTRIBUTE] = {**record, "digest": digest(frame, record)}
    return frame


def certificate_of(frame: pd.DataFrame) -> Certificate:
    """Return the certificate that a frame carries, without checking its digest.

    Raises
    ------
    CertificateError
        If it carries none that this version can read.
    """
    if not isinstance(frame, pd.DataFrame):
        raise CertificateError(
            f"a certificate is for a whole released DataFrame, got a {type(frame).__name__}."
        )
    record = frame.attrs.get(ATTRIBUTE)
    if not isinstance(record, Mapping) or "digest" not in record:
        raise CertificateError(
            "this frame carries no certificate: it was not released by dpframe, or its attrs were "
            "lost on the way (CSV and JSON files lose them; Parquet, Feather and pickle keep them, "
            "and so do dpf.write_csv and dpf.read_csv)."
        )
    if record.get("format") != FORMAT:
        raise CertificateError(
            f"this frame's certificate has format {record.get('format')!r}, and this version "
            f"reads {FORMAT}."
        )
    return Certificate(record)


def verify(frame: pd.DataFrame, *, ledger: Ledger | None = None) -> Certificate:
    """Check that a frame is what was released or made from it here, and return its certificate.

    The digest is a SHA-256 over index, columns, dtypes, values and the certificate itself. It shows
    a mistake, such as a filter, a rounding or a sum with raw data; it is no signature, and does not
    show that somebody rewrote the digest as well. Steps taken by this library after the release,
    such as denoising, name the digest of the release; it is computed again from the columns that
    were released.

    Parameters
    ----------
    frame
        A released frame, or one that was made from it here.
    ledger
        Check also that this ledger was charged for the release: under the same id, at the same
        time, for the same query, mechanism and cost.

    Returns
    -------
    Certificate
        Its `state` is "released" or "post-processed".

    Raises
    ------
    CertificateError
        If the frame carries no certificate, or was altered: frame or certificate differ from what
        was released or post-processed; or if it is not in the ledger.
    """
    certificate = certificate_of(frame)
    if not _is_sound(frame, certificate.to_dict()):
        raise CertificateError(
            "this frame is not what its certificate was given for: its rows, columns or values, or "
            "the certificate, were changed after the release. Go back to the released frame; the "
            "certificate says nothing about this one."
        )
    if ledger is not None:
        check_recorded(certificate.to_dict(), ledger)
    return certificate


def _is_sound(frame: pd.DataFrame, record: Mapping[str, Any]) -> bool:
    """Whether a frame has the digest of its certificate, and its steps that of the release."""
    try:
        if digest(frame, record) != record["digest"]:
            return False
        released = frame.iloc[:, : len(record["columns"])]
        steps = record["steps"]
        origins = {step["of"] for step in steps}
        return not steps or origins == {digest(released, {**record, "steps": []})}
    except (KeyError, TypeError, ValueError, AttributeError):  # not one of our certificates
        return False


def digest(frame: pd.DataFrame, record: Mapping[str, Any]) -> str:
    """Return a SHA-256 over a certificate and its frame: index, columns, dtypes, values."""
    seen = hashlib.sha256()
    promise = {key: value for key, value in record.items() if key != "digest"}
    _feed(seen, b"certificate", json.dumps(promise, sort_keys=True).encode())
    _feed(seen, b"columns", json.dumps([_text(label) for label in frame.columns]).encode())
    index = frame.index
    for position, name in enumerate(index.names):
        values = index.get_level_values(position) if index.nlevels > 1 else index
        _feed(seen, b"index", json.dumps([_text(name)]).encode())
        _feed_values(seen, values)
    for position in range(frame.shape[1]):
        _feed_values(seen, frame.iloc[:, position])
    return f"sha256:{seen.hexdigest()}"


def _feed(seen: Any, kind: bytes, data: bytes | np.ndarray) -> None:
    """Add a piece with its kind and length, so that no two sequences of pieces look the same."""
    seen.update(kind + str(len(data)).encode() + b":")
    seen.update(data)


def _feed_values(seen: Any, values: Any) -> None:
    """Add dtype and values, the same before and after a file."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = pd.Index(np.asarray(values))  # a file may keep the categories alone
    dtype = values.dtype
    kind = getattr(dtype, "kind", "O")
    if kind in "iuf":
        plain = np.dtype(str(dtype).lower().partition("[")[0])  # nullable ones come back as NumPy's
        data = np.ascontiguousarray(values, dtype=plain)
        _feed(seen, plain.newbyteorder("<").str.encode(), data.view(np.uint8))
    elif kind == "b":
        _feed(seen, b"booleans", np.ascontiguousarray(values, dtype=bool).tobytes())
    else:
        # a file may keep times in another unit, and intervals with it
        name = {"m": "durations", "M": "times"}.get(kind, "objects")
        name = str(dtype) if isinstance(dtype, pd.PeriodDtype) else name
        texts = [value if type(value) is str else _text(value) for value in _listed(values)]
        _feed(seen, name.encode(), json.dumps(texts).encode())


def _listed(values: Any) -> list[Any]:
    """List values; texts of Arrow are quicker to read all at once."""
    if isinstance(values.dtype, pd.StringDtype):
        values = np.asarray(values, dtype=object)
    return list(values)


def _text(value: object) -> str:
    """Write a label or a key the same way before and after a file."""
    if isinstance(value, pd.Interval):
        return f"{_text(value.left)} {value.closed} {_text(value.right)}"
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        # 1 and 1.0 are the same key: a file may widen the dtype of a level
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value)


def pack(values: np.ndarray | float) -> float | dict[str, str]:
    """Write a number as it is, and an array as JSON text that `attrs` carries at no cost."""
    if np.ndim(values) == 0 and math.isfinite(values):  # JSON has no infinity
        return float(values)
    return {"float64": base64.b64encode(np.asarray(values, "<f8").tobytes()).decode("ascii")}


def unpack(packed: float | Mapping[str, str]) -> float | np.ndarray:
    """Read a number, or an array written by `pack`."""
    if isinstance(packed, Mapping):
        return np.frombuffer(base64.b64decode(packed["float64"]), "<f8")
    return packed
