"""Frames that were changed on purpose, with a certificate that fits them; and records as JSON."""

import json
import secrets

from dpframe import Certificate
from dpframe.cells.keys import token
from dpframe.cells.record import ATTRIBUTE, RECORD, attach
from dpframe.certificates.json_records import read


def recertified(frame, released):
    """Give a frame the certificate of a release, with a record of its own cells."""
    certificate = released.dp.certificate
    computed = {column.label: column.definition for column in certificate.table.columns}
    definitions = [computed.get(token(label)) for label in frame.columns]
    return recorded(frame, certificate.releases, definitions)


def recorded(frame, releases, definitions=None, salt=None):
    """Give a frame a record of its own cells, as of some releases."""
    attach(frame, releases, definitions, salt=salt or secrets.token_hex(16))
    return frame


def record_of(frame):
    """Return the record of a frame as plain JSON."""
    return json.loads(text_of(frame))


def text_of(frame):
    """Return the text of the record of a frame."""
    return frame.attrs[ATTRIBUTE][RECORD]


def carry_text(frame, text):
    """Let a frame carry a record that somebody wrote; a text, or plain JSON."""
    frame.attrs = {ATTRIBUTE: {RECORD: text if isinstance(text, str) else json.dumps(text)}}
    return frame


def read_certificate(record):
    """Read a certificate from plain JSON, whatever its digest is."""
    return read(Certificate, record, "this certificate")
