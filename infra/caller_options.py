"""The options of who may call. A part of the table of options."""

from __future__ import annotations

from typing import Final

from .option import Option

SCOPE: Final = r"[!%&(-\[\]-~]{1,255}"
"""RFC 6749, section 3.3, without `$`, `#` and `'`, which mean something in API Gateway's templates
and headers."""

CALLERS: Final = (
    Option(
        "auth",
        "Who may call: `oauth` (callers bring an access token of an OIDC issuer), `iam` (they sign "
        "with SigV4) or `none` (anybody). On AWS it has to be given; with `make up` it is `none`.",
        "oauth, iam or none",
        "auth=oauth",
    ),
    Option(
        "issuer",
        "With `auth=oauth`: the issuer of the access tokens.",
        "an https:// URL, without query and fragment, exactly as its tokens' iss has it",
        "issuer=https://login.example.com/v2.0",
    ),
    Option(
        "audience",
        "With `auth=oauth`: what an access token's `aud` has to name, one of these. By default the "
        "endpoint's own URL, which clients ask for as `resource`. [issuers.md](issuers.md) says "
        "what each issuer writes.",
        "audiences separated by spaces, each 1 to 255 of printable ASCII",
        "audience=https://mcp.example.com/mcp",
        pattern="( *[!-~]{1,255}(?= |$))* *",
    ),
    Option(
        "scopes",
        "With `auth=oauth`: the scopes that every access token needs. Tools may ask for more.",
        "scopes separated by spaces, of printable ASCII without \" \\ $ # and '",
        "scopes='mcp reports:read'",
    ),
    Option(
        "scope_prefix",
        "With `auth=oauth`: what the names of scopes begin with when clients ask for them, where "
        "the issuer wants that (Entra ID, Cognito). Tokens may have them with it or without.",
        "1 to 255 of printable ASCII without \" \\ $ # and '",
        "scope_prefix=api://mcp.example.com/",
        pattern=rf"|{SCOPE}",
    ),
    Option(
        "token_typ",
        "With `auth=oauth`: the `typ` that an access token's header has to have. `jwt` takes any "
        "JWT but ID tokens; `at+jwt` takes only tokens that say they are access tokens (RFC 9068).",
        "jwt or at+jwt",
        "token_typ=at+jwt",
        "jwt",
        pattern=r"jwt|at\+jwt",
    ),
    Option(
        "principal",
        "With `auth=iam`, where it has to be given: whom a task belongs to that an assumed role "
        "created. `session`: to the role's session of that name, which whoever assumes the role "
        "chooses. `role`: to all who may assume the role. [security.md](security.md#iam) says who "
        "shares what. Tasks that run when it changes are lost to their owners.",
        "session or role",
        "principal=role",
        pattern="session|role",
    ),
    Option(
        "quota_per",
        "With `auth=iam`: whom limits count together. `role`: all sessions of a role, so that a "
        "new session's name brings no new limits.",
        "principal or role",
        "quota_per=role",
        "principal",
        pattern="principal|role",
    ),
)
