"""Columns of certificates, made by hand."""

from dpframe.certificates.column_parts import ColumnPart, FeaturePart, values_part
from dpframe.certificates.json_records import pack


def column_of(kind, totals, loadings, *bounds):
    """Say what a column was read off: totals by feature, and loadings by feature and block."""
    return ColumnPart(
        kind=kind,
        name=kind,
        columns=tuple(values_part(f"x{at}", ends) for at, ends in enumerate(bounds)),
        condition="late" if kind == "rate" else None,
        where=None,
        weights=None,
        integer=False,
        noise=None,
        std_error=None,
        features={
            name: FeaturePart(
                pack(total), {block: pack(part) for block, part in loadings[name].items()}
            )
            for name, total in totals.items()
        },
    )
