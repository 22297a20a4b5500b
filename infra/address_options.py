"""The options of addresses. A part of the table of options."""

from __future__ import annotations

from typing import Final

from .option import Option

LABEL: Final = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
HOST_NAME: Final = rf"(?i:(?=.{{1,253}}$)({LABEL}\.)+{LABEL})"
"""RFC 1123, section 2.1."""
ZONE_ID: Final = "[A-Z0-9]{1,32}"
CERTIFICATE_ARN: Final = r"arn:aws[a-z-]*:acm:[a-z0-9-]+:[0-9]{12}:certificate/[a-z0-9-]+"
MAX_PRIORITY: Final = 90_000
"""Four rules of a stack fit below API Gateway's 1,000,000 with it (`infra/routing.py`)."""

ADDRESS: Final = (
    Option(
        "streaming",
        "Whether `subscriptions/listen` is answered as a stream, which lasts up to 15 minutes, or "
        "with what changed in up to 25 seconds.",
        "true or false",
        "streaming=true",
        "false",
        pattern="true|false",
    ),
    Option(
        "origins",
        "The origins whose web pages may call the server and read its answers (CORS). `*` stands "
        "for any run of characters. A request with another `Origin` is refused; one without, which "
        "programs send, is not.",
        "origins separated by spaces",
        "origins='https://a.example https://b.example'",
    ),
    Option(
        "hosts",
        "The `Host` headers that are answered. Without it, all that lead to the server.",
        "host names separated by spaces",
        "hosts=mcp.example.com",
    ),
    Option(
        "url",
        "The endpoint's URL as clients know it, when it is neither at `domain` nor at API "
        "Gateway's own name for it: behind a CDN, for instance.",
        "an https:// URL that ends in /mcp, such as https://cdn.example.com/mcp",
        "url=https://cdn.example.com/mcp",
        emulator=False,
    ),
    Option(
        "domain",
        "A custom domain of API Gateway, of the same account and region, that leads to the stack; "
        "the API's own host then answers no more. It exists already, unless `hosted_zone` or "
        "`certificate` says that the stack creates it ([addresses](addresses.md)). "
        "Several stacks, each with its own `cell`, can share one; all have the same `auth`.",
        "a host name, such as mcp.example.com",
        "domain=mcp.example.com",
        emulator=False,
        pattern=f"|{HOST_NAME}",
    ),
    Option(
        "hosted_zone",
        "The stack creates `domain`, with a certificate and a DNS record in this public zone of "
        "Route 53. All three stay when the stack is removed.",
        "the id of a hosted zone, as aws route53 list-hosted-zones shows it, such as "
        "Z0123456789ABCDEFGHIJ",
        "hosted_zone=Z0123456789ABCDEFGHIJ",
        emulator=False,
        pattern=f"|{ZONE_ID}",
    ),
    Option(
        "certificate",
        "The stack creates `domain` with this certificate of AWS Certificate Manager. Without "
        "`hosted_zone`, the DNS record is made by hand: the output `DomainTarget` is its value.",
        "the ARN of a certificate of this region, arn:aws:acm:...",
        "certificate=arn:aws:acm:eu-west-1:111122223333:certificate/"
        "1234abcd-12ab-34cd-56ef-1234567890ab",
        emulator=False,
        pattern=f"|{CERTIFICATE_ARN}",
    ),
    Option(
        "priority",
        "The stack's place among those of its domain. The stack with the lowest gets the requests "
        "that name no task.",
        f"1 to {MAX_PRIORITY}, another for each stack of a domain",
        "priority=200",
        "100",
        emulator=False,
        bounds=(1, MAX_PRIORITY),
    ),
)
