"""The text of `docs/configuration.md`, written from the table of options."""

from __future__ import annotations

from typing import Final

from .option import Option
from .options import SECTIONS

HEAD: Final = """\
# Configuration

After reading this page you can choose everything in which one deployment may differ from another:
its name, who may call it, its addresses, its limits, and whom its alarms notify.

This page is printed by `python -m infra.options` from the table in
[`infra/options.py`](../infra/options.py). Change the table, not the page.

Every option is a word on the command line:

```
make deploy auth=iam principal=role stack=notes    # to the account of your credentials
make synth auth=iam principal=role stack=notes     # only the CloudFormation template
make up max_tasks=20                               # on this machine
```

`make up` takes the options marked with "yes", and `port=`. `make replay` and `make destroy` take
`stack=`. An option that a fork always wants stands in `cdk.json`, under `context`, for instance as
`"max_tasks": 20`. It counts for `make deploy`, `make synth` and `make up`; the command line
overrides it. A value that an option does not take is refused before anything is deployed, and the
error says what the option takes.
"""
COLUMNS: Final = ("option", "default", "takes", "what it decides", "example", "`make up`")


def page() -> str:
    """The page, as Markdown."""
    sections = [f"## {title}\n\n{_table(options)}" for title, options in SECTIONS.items()]
    return "\n".join([HEAD, *sections])


def _table(options: tuple[Option, ...]) -> str:
    rows = [COLUMNS, ("---",) * len(COLUMNS), *(_row(option) for option in options)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def _row(option: Option) -> tuple[str, ...]:
    return (
        f"`{option.name}`",
        f"`{option.default}`" if option.default else "-",
        option.values,
        option.meaning,
        f"`{option.example}`",
        "yes" if option.emulator else "-",
    )
