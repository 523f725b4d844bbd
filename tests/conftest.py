"""How hypothesis runs: without deadlines, and in the gate with the same examples every time.

`--hypothesis-profile=long` draws 10,000 examples of every property that does not say how many.
"""

import os

from hypothesis import settings

settings.register_profile("explore", deadline=None)
settings.register_profile("gate", deadline=None, derandomize=True)
settings.register_profile("long", deadline=None, max_examples=10_000)
settings.load_profile("gate" if os.environ.get("CI") else "explore")
