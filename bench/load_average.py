"""How busy the machine is: printed beside every rate, which means little without it."""

import os


def print_load_average() -> None:
    """The system's load averages over 1, 5 and 15 minutes."""
    print("load average", *(f"{value:.1f}" for value in os.getloadavg()), flush=True)
