"""Tests of what uses dpframe: record what a pipeline measures, and replay it on a neighbor."""

from dpframe.errors import PrivacyTestError
from dpframe.testing.recorder import record, seeded_noise
from dpframe.testing.rehearsal import rehearsal

__all__ = ["PrivacyTestError", "record", "rehearsal", "seeded_noise"]
