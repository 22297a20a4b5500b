"""The CDK app: one stack.

Context (`-c key=value`):
    profile   aws (default) or local
    tools     the tools folder; functions/tools by default
    stack     the stack's name, which begins its resources' names; mcp-tasks by default
    cell      the stack's name among others, in its task ids; c1 by default
    auth      iam (default: callers sign with SigV4) or none (anybody; must be asked for)
    origins   browsers' origins that may call, separated by spaces; none by default
"""

from __future__ import annotations

import sys

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from .bundle import ROOT, BundleError
from .settings import Settings
from .stack import McpTasksStack


def main() -> None:
    """Build the app from the context."""
    app = App()
    settings = Settings.from_context(app.node.try_get_context, ROOT)
    McpTasksStack(app, settings)
    if settings.profile.checked:
        Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()


if __name__ == "__main__":
    try:
        main()
    except (BundleError, ValueError) as error:
        sys.exit(f"error: {error}")
