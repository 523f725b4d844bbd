"""Numbers printed beside what they should be, for the scripts of this folder."""

import sys
from dataclasses import dataclass, field


@dataclass
class Checks:
    """Compare numbers, print each comparison, and remember those that fail."""

    failed: list[str] = field(default_factory=list)

    def close(self, what: str, found: float, expected: float, tolerance: float) -> None:
        """Check `found` against `expected`, up to a relative tolerance."""
        off = found / expected - 1
        line = f"{what:<50} {found:10.4f}  expected {expected:10.4f}"
        self.true(f"{line}  off {off:+8.3%} (at most {tolerance:.3%})", abs(off) <= tolerance)

    def true(self, what: str, holds: bool) -> None:
        """Check that something holds."""
        print(f"{'ok    ' if holds else 'FAILED'} {what}")
        if not holds:
            self.failed.append(what)

    def finish(self) -> None:
        """Leave with exit code 1 if a check failed."""
        print(f"\n{len(self.failed)} checks failed." if self.failed else "\nAll checks hold.")
        sys.exit(1 if self.failed else 0)
