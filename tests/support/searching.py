"""Previews of what is looked for: groups, caps and bounds."""

import inspect


def preview_of(frame, make, *about, **options):
    """Preview what the method of the same name would release."""
    own = {
        name: options.pop(name) for name in inspect.signature(make).parameters if name in options
    }
    return frame.dp.plan(make(*about, **own), **options).table
