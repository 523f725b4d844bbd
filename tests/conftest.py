"""How hypothesis runs: without deadlines, and in the gate with the same examples every time."""

import os

from hypothesis import settings

settings.register_profile("explore", deadline=None)
settings.register_profile("gate", deadline=None, derandomize=True)
settings.load_profile("gate" if os.environ.get("CI") else "explore")
