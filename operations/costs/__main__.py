"""`make cost [tasks=...] [polls=...] ...`: print a month's bill. See `load.py` for the options."""

from __future__ import annotations

import argparse
import sys

from local.console import fail, say

from .bill import Bill
from .load import Load
from .prices import Prices


def main(arguments: list[str]) -> int:
    """Print the bill of the load that NAME=VALUE arguments describe, in the region of `region=`."""
    parser = argparse.ArgumentParser(prog="python -m operations.costs")
    parser.add_argument("options", nargs="*", metavar="NAME=VALUE", help="see load.py; region=")
    given = parser.parse_args(arguments).options
    options = dict(each.partition("=")[::2] for each in given)
    try:
        prices = Prices.read(options.pop("region", "us-east-1"))
        say(str(Bill.of(Load.of(options), prices)))
    except (LookupError, ValueError) as error:
        return fail(error.args[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
