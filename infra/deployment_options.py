"""The options of a deployment itself: its name and its tools. A part of the table of options."""

from __future__ import annotations

from typing import Final

from .option import Option

DEPLOYMENT: Final = (
    Option(
        "tools",
        "The folder with the tools.",
        "a folder, from the repository's root or from anywhere",
        "tools=functions/tools",
        "functions/tools",
    ),
    Option(
        "stack",
        "The stack's name, with which its resources' names begin. Another name is another stack. "
        "Without it, `stack` of `server.toml`.",
        "1 to 28 letters, digits and hyphens",
        "stack=notes",
        pattern="[A-Za-z][A-Za-z0-9-]{0,27}",
    ),
    Option(
        "stage",
        "The stage to deploy: its options stand in `stages/NAME.json`, and the command line "
        "overrides them. Without `stack` among them, the stack is called as `server.toml` says, "
        "followed by the stage ([stages and pipelines](rollout.md)).",
        "the name of a file of stages/, without .json",
        "stage=dev",
        emulator=False,
    ),
    Option(
        "cell",
        "The stack's name among several behind one address; its task ids begin with it. Choose it "
        "once: the server does not find tasks any more that run when it changes.",
        "1 to 16 lower-case letters and digits",
        "cell=eu1",
        "c1",
        pattern="[a-z0-9]{1,16}",
    ),
    Option(
        "companion_tools",
        "Whether clients that can neither take tasks nor resume event streams get the tools "
        "`task_result`, `task_answer` and `task_cancel` beside tools that run as tasks "
        "([tools](tools.md#clients-without-tasks)). Without them, such a client is refused.",
        "on or off",
        "companion_tools=off",
        "on",
        pattern="on|off",
    ),
)
