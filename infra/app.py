"""The CDK app: one stack.

Context (`-c key=value`):
    profile      aws (default) or local
    tools        the tools folder; functions/tools by default
    stack        the stack's name, which begins its resources' names; mcp-tasks by default
    cell         the stack's name among others, in its task ids; c1 by default. Choose it once:
                 tasks that run when it changes are not heard of again
    auth         iam (default: callers sign with SigV4) or none (anybody; must be asked for)
    origins      browsers' origins that may call, separated by spaces; none by default
    hosts        names that it answers under, separated by spaces; all that lead to it by default
    streaming    true or false (default): whether listens are answered as a stream, which lasts
                 up to 15 minutes, or with what happened in up to 25 seconds
    domain       a custom domain of API Gateway, in the same account and region, to answer under;
                 several stacks, each a cell, share one
    priority     the stack's place among those of its domain: 1 to 90000, 100 by default, none
                 twice. The one with the lowest starts the tasks
    access_log   on or off (default). API Gateway writes access logs only in an account and region
                 whose settings name a role for it, and a stack should not change those
"""

from __future__ import annotations

import sys

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from .bundle import ROOT, BundleError, bundled
from .catalogue import discover
from .settings import Settings
from .stack import McpTasksStack


def synthesize(app: App) -> None:
    """Build the app from its context.

    Raises ValueError for what cannot be deployed, BundleError, and RuntimeError for findings of
    cdk-nag, which are printed.
    """
    settings = Settings.from_context(app.node.try_get_context, ROOT)
    catalogue = discover(settings.tools)
    with bundled(catalogue, settings.tools, settings.profile.target) as bundle:
        McpTasksStack(app, settings, catalogue, bundle)
        if settings.profile.checked:
            Validations.of(app).add_plugins(AwsSolutionsChecks(app))
        app.synth()


if __name__ == "__main__":
    try:
        synthesize(App())
    except (BundleError, ValueError) as error:
        sys.exit(f"error: {error}")
