"""Tests of what uses dpframe: check a pipeline, record what it measures, replay it on a neighbor.

`import dpframe` does not import it, and no setting of a process turns it on: only a `with` block.
"""

from dpframe.errors import PrivacyTestError
from dpframe.testing.check import check
from dpframe.testing.engines import check_engine
from dpframe.testing.recorder import record, seeded_noise
from dpframe.testing.rehearsal import rehearsal

__all__ = ["PrivacyTestError", "check", "check_engine", "record", "rehearsal", "seeded_noise"]
