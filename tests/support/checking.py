"""The check of a charge, as tests need it."""

from dpframe.checker import check


def let_all_charges_pass(patch):
    """Turn the check off, to see what else finds a fault of plans; given pytest's `MonkeyPatch`."""
    patch.setattr(check, "compare", lambda witness, charged: None)
