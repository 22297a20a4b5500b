"""The gateway's HTTP server, with the instances of the API function behind it."""

from __future__ import annotations

import threading

from local.gateway_process import url_of

from .deployed_api import DeployedApi
from .handler import GatewayServer, RequestHandler
from .lambda_instances import MAX_INSTANCES, InstancePool


class Gateway:
    """The server on a port of 127.0.0.1; 0 chooses a free one. Serves until it is closed."""

    def __init__(
        self, deployed: DeployedApi, port: int = 0, max_instances: int = MAX_INSTANCES
    ) -> None:
        self._server = server = GatewayServer(("127.0.0.1", port), RequestHandler)
        self.instances = InstancePool(deployed.function, max_instances)
        server.api, server.instances = deployed.api, self.instances
        self._thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The MCP endpoint."""
        return url_of(self._server.server_port)

    def close(self) -> None:
        """Close all connections and kill all instances."""
        self._server.shutdown()
        self.instances.close()
        self._server.close()
