"""Tests of what uses dpframe: record what a pipeline measures, and replay it on a neighbor."""

from dpframe.errors import PrivacyTestError
from dpframe.testing.recorder import record, seeded_noise

__all__ = ["PrivacyTestError", "record", "seeded_noise"]
