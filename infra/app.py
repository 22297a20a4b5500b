"""The CDK app: one stack. `infra/options.py` is the table of what `-c key=value` can choose."""

from __future__ import annotations

import os
import sys

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from .bundle import ROOT, BundleError, bundled
from .settings import Settings
from .stack import McpTasksStack
from .stack_size import check_size
from .tool_discovery import discover
from .wrapped_state_machines import WrappedStateMachines


def synthesize(app: App) -> None:
    """Build the app from its context.

    Raises ValueError for what cannot be deployed, BundleError, and RuntimeError for findings of
    cdk-nag, which are printed.
    """
    settings = Settings.from_context(app.node.try_get_context, ROOT)
    catalogue = discover(settings.tools)
    settings.check(catalogue)
    if settings.profile.checked:
        place = os.environ.get("CDK_DEFAULT_ACCOUNT"), os.environ.get("CDK_DEFAULT_REGION")
        WrappedStateMachines.of(catalogue).check_place(*place)
    with bundled(catalogue, settings.tools, settings.profile.target) as bundle:
        settings.identity.write(bundle)
        check_size(McpTasksStack(app, settings, catalogue, bundle))
        if settings.profile.checked:
            Validations.of(app).add_plugins(AwsSolutionsChecks(app))
        app.synth()


if __name__ == "__main__":
    try:
        synthesize(App())
    except (BundleError, ValueError) as error:
        sys.exit(f"error: {error}")
