"""A local API Gateway that streams: `python -m local.gateway --emulator NAME --stack NAME`.

The emulator buffers every response. This gateway runs the deployed code of the API function in
processes of its own, on the runtime loop that streams, and passes each chunk on as it arrives (API
Gateway developer guide, "Stream the integration response for your proxy integrations"). The
function's calls to AWS go to the emulator.

Methods, gateway responses and the authorizer are read from the emulator's API Gateway. The
authorizer's function runs on the emulator.

Differences from AWS:

- When a client disconnects, API Gateway lets the function run on and discards the response. This
  gateway kills the function's instance, to save the machine's memory.
- There are no accounts. The number of instances is the only throttling.
- A stream that is silent for five minutes is not closed.

`server.py` and `handler.py` serve HTTP. `rest_api.py`, `authorizer.py` and `proxy_event.py` do what
API Gateway does. `lambda_instances.py`, `runtime_api.py`, `runtime_api_handler.py` and
`invocation.py` do what Lambda does.
"""

from .deployed_api import FUNCTION_TIMEOUT_SECONDS, DeployedApi
from .handler import HOP_BY_HOP_HEADERS, MAX_BODY_BYTES
from .server import Gateway

__all__ = [
    "FUNCTION_TIMEOUT_SECONDS",
    "HOP_BY_HOP_HEADERS",
    "MAX_BODY_BYTES",
    "DeployedApi",
    "Gateway",
]
