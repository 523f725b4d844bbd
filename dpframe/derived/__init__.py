"""Numbers computed from released ones: `scale (w . x) / (v . y) + shift`, with intervals."""
