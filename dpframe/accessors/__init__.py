"""The `.dp` accessors on frames: one-line delegations, without state of their own."""
