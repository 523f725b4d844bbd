"""The frame whose `.dp` type checkers and editors know; at run time it is that of pandas."""

from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from dpframe.accessors.frames import DPAccessor

    class DataFrame(pd.DataFrame):
        """A frame of pandas, with the accessor that the package registers."""

        @property
        def dp(self) -> DPAccessor:
            """Differentially private releases of the frame."""

else:
    DataFrame = pd.DataFrame
