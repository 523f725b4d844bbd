"""The `.dp` accessor on each kind of frame: one-line delegations, without state of their own."""
