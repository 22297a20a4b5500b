"""The table of options: what a deployment can choose, each one key of CDK context.

`infra/cdk_context.py` reads and checks the values by this table. `python -m infra.options` prints
`docs/configuration.md` from it. A test compares the table with that page and with the Makefile.
"""

from __future__ import annotations

from typing import Final

from .address_options import ADDRESS
from .caller_options import CALLERS
from .deployment_options import DEPLOYMENT
from .limit_options import LIMITS
from .monitoring_options import MONITORING
from .operation_options import OPERATIONS

SECTIONS: Final = {
    "The deployment": DEPLOYMENT,
    "Who may call": CALLERS,
    "Addresses": ADDRESS,
    "Limits": LIMITS,
    "Operations": OPERATIONS,
    "Monitoring": MONITORING,
}
OPTIONS: Final = {option.name: option for section in SECTIONS.values() for option in section}
"""Name -> option. `profile` (`infra/deployment_profiles.py`) is not one: the commands give it."""


if __name__ == "__main__":
    from .options_page import page

    print(page(), end="")
