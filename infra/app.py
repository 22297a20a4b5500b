"""The CDK app: one stack.

Context (`-c key=value`):
    profile        aws (default) or local
    tools          the tools folder; functions/tools by default
    stack          the stack's name, which begins its resources' names; mcp-tasks by default
    cell           the stack's name among others, in its task ids; c1 by default. Choose it once:
                   tasks that run when it changes are not heard of again
    auth           who may call; on AWS there is no default: oauth (callers bring an access token
                   of an OIDC issuer), iam (they sign with SigV4) or none (anybody)
    issuer         with oauth: the tokens' issuer, an https:// URL, exactly as their iss has it
    audience       with oauth: what their aud has to name
    scopes         with oauth: what every token must be good for, separated by spaces; nothing by
                   default. Tools may ask for more
    url            the endpoint as clients know it, when it is neither at the domain nor at API
                   Gateway's name for it: behind a CDN, for instance. It ends in /mcp
    origins        browsers' origins that may call, separated by spaces; none by default
    hosts          names that it answers under, separated by spaces; all that lead to it by default
    streaming      true or false (default): whether listens are answered as a stream, which lasts
                   up to 15 minutes, or with what happened in up to 25 seconds
    domain         a custom domain of API Gateway, in the same account and region, to answer under;
                   several stacks, each a cell, share one, and have the same auth
    priority       the stack's place among those of its domain: 1 to 90000, 100 by default, none
                   twice. The one with the lowest starts the tasks
    max_tasks      tasks of one caller that are not over: 100 by default. 0 is no limit, here and
                   for the next three
    max_creations  tasks that one caller may create a minute: 120
    max_polls      how often a second one caller may ask for one task: 2, in the long run
    max_listens    listens of one caller that are open: 10
    max_body       bytes of a request's body: 1048576
    max_arguments  bytes of a tool's arguments: 262144
    max_depth      levels of arrays and objects in a body: 100
    max_ttl_days   how long tools may keep their tasks: 30; one that declares more is refused
    rate           requests a second that API Gateway lets through, of all callers: 500
    burst          requests at once that it lets through: 1000
    access_log     on or off (default). API Gateway writes access logs only in an account and region
                   whose settings name a role for it, and a stack should not change those
    alarms         the ARN of an SNS topic of the same region that alarms tell; nobody by default
    encryption     what data is encrypted with: aws (default: keys that AWS manages), customer (a
                   KMS key of the stack's own, about $1 a month and its calls) or the ARN of a key
                   of the same region, whose policy lets CloudWatch Logs and EventBridge use it
"""

from __future__ import annotations

import sys

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from .bundle import ROOT, BundleError, bundled
from .settings import Settings
from .stack import McpTasksStack
from .tool_discovery import discover


def synthesize(app: App) -> None:
    """Build the app from its context.

    Raises ValueError for what cannot be deployed, BundleError, and RuntimeError for findings of
    cdk-nag, which are printed.
    """
    settings = Settings.from_context(app.node.try_get_context, ROOT)
    catalogue = discover(settings.tools)
    settings.check(catalogue)
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
