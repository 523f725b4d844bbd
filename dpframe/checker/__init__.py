"""A second look at every charge, by code that made no plan.

Before a ledger is charged, the functions that turn rows into integers are probed with odd rows, the
worst unit is looked for, and what it loses is compared with the charge. Designs are not asked what
they think that a unit moves. See *The check of a charge* among the proofs.
"""
