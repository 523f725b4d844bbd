"""Names of files that every system takes for what they are: a plan travels from one to another.

Windows keeps some names for devices, drops a dot or a space at the end of a name, and reads what
follows a colon as a part of a file. Windows and macOS take names that differ by case for one.
"""

import re
import unicodedata
from pathlib import Path

_DEVICES = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\N{SUPERSCRIPT ONE}"
    r"\N{SUPERSCRIPT TWO}\N{SUPERSCRIPT THREE}]) *(\..*)?",
    re.IGNORECASE | re.DOTALL,
)
_SIGNS = frozenset('<>:"|?*\\')
_LEADING = frozenset({".", ".."})


def folded(path: Path) -> str:
    """Return what two paths have in common that name one file on some system.

    Examples
    --------
    >>> folded(Path("out/Zones.csv")) == folded(Path("OUT/zones.CSV"))
    True
    """
    return unicodedata.normalize("NFC", str(path)).casefold()


def why_not_portable(text: str) -> str:
    """Say why a path of a plan names no file, or another one, on some system; empty if it does not.

    Examples
    --------
    >>> why_not_portable("out/nul.csv")
    "'nul.csv' is the name of a device on Windows"
    >>> why_not_portable("out/zones.csv")
    ''
    """
    path = Path(text)
    for part in path.parts[1:] if path.anchor else path.parts:
        if part in _LEADING:
            continue
        if _DEVICES.fullmatch(part):
            return f"{part!r:.200} is the name of a device on Windows"
        if part[-1] in ". ":
            return f"{part!r:.200} ends with a dot or a space, which Windows drops"
        if any(sign in _SIGNS or sign < " " for sign in part):
            listed = " ".join(sorted(_SIGNS))
            return f"{part!r:.200} has one of {listed}, which no name has on Windows"
    return ""
