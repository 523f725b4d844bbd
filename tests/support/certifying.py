"""Frames that were changed on purpose, with a certificate that fits them."""

from dpframe.cells.record import attach


def recertified(frame, released):
    """Give a frame the certificate of a release, with a digest of its own."""
    attach(frame, released.dp.certificate.releases)
    return frame
