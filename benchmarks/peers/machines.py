"""The machine that something is measured on, and what else it does at that time."""

import os
import platform
import time
from pathlib import Path

SHORT = 0.25  # seconds over which other work is watched


def described() -> dict[str, object]:
    """Describe the machine as it is before a measurement."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
        "busy": busy(),
    }


def processor() -> str:
    """Name the processor; hosts of virtual machines often hide all but its family and model."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text(encoding="utf-8").splitlines() if cpu.exists() else []
    said: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        said.setdefault(name.strip(), value.strip())
    if "model name" not in said:
        return platform.processor() or platform.machine()
    kind = f"{said['model name']}, family {said.get('cpu family')}, model {said.get('model')}"
    return f"{kind}, virtual" if "hypervisor" in said.get("flags", "").split() else kind


def busy() -> float:
    """Return how many cores other work keeps busy, watched for a moment."""
    before = spent()
    time.sleep(SHORT)
    after = spent()
    return round(max(after - before, 0.0) / os.sysconf("SC_CLK_TCK") / SHORT, 1)


def spent() -> float:
    """Return the ticks that all cores have worked, the part of others on the host left out."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return 0.0
    user, nice, system, _, _, irq, softirq = map(int, stat.read_text().split()[1:8])
    return float(user + nice + system + irq + softirq)
