"""The JSON Schema of certificates, which ships with the package."""

import json
from importlib.resources import files
from typing import Any

__all__ = ["certificate_schema"]


def certificate_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the certificates of this version.

    Each field says which question about a guarantee it answers; the questions are those of NIST SP
    800-226 (Near, Darais, Lefkovitz and Howarth 2025).

    Returns
    -------
    dict
        A fresh copy, for any validator.

    Examples
    --------
    >>> schema = certificate_schema()
    >>> schema["properties"]["neighboring"]["enum"]
    ['add_remove', 'replace']
    """
    file = files("dpframe.results").joinpath("certificate.schema.json")
    schema: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return schema
