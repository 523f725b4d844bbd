"""A source of bytes that can be had again."""

import hashlib


class Stream:
    """A reproducible source of bytes."""

    def __init__(self, seed):
        self.seed, self.calls = seed, 0

    def __call__(self, n):
        self.calls += 1
        return hashlib.shake_128(f"{self.seed}/{self.calls}".encode()).digest(n)
