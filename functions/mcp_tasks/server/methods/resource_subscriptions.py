"""`resources/subscribe` and `resources/unsubscribe` of the revisions with sessions
(2025-11-25 server/resources.mdx, "Subscriptions"). The changes come on the session's own stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from ...notifications.server_changes import MAX_URI_CHARACTERS
from ...protocol.errors import ErrorCode, ProtocolError, invalid_params
from ...registry.catalogue import Catalogue
from ...sessions.session_table import MAX_URIS
from ..call import Call, Complete, MethodTable, ResourceNotFound
from ..sessions import Session, Sessions
from .session_stream import SessionStream


@dataclass(frozen=True, slots=True)
class ResourceSubscriptions:
    """Serves both methods."""

    catalogue: Catalogue
    sessions: Sessions
    session_stream: SessionStream

    def table(self) -> MethodTable:
        """The methods by name; none where there are no resources."""
        if not self.catalogue.resources:
            return {}
        return {"resources/subscribe": self.subscribe, "resources/unsubscribe": self.unsubscribe}

    def subscribe(self, call: Call) -> Complete:
        """Raises ProtocolError: for an unknown resource, and at MAX_URIS resources."""
        session, uri = _session(call), self._uri(call)
        if len(uri) > MAX_URI_CHARACTERS or self.catalogue.resource(uri) is None:
            raise ResourceNotFound(uri[:MAX_URI_CHARACTERS])
        if not self.sessions.subscribe(session, uri):
            raise ProtocolError(
                ErrorCode.INVALID_REQUEST,
                f"The session is subscribed to {MAX_URIS} resources; unsubscribe from one",
                status=HTTPStatus.OK,
            )
        self.session_stream.add_resource(call.principal, session, uri)
        return Complete({})

    def unsubscribe(self, call: Call) -> Complete:
        """From a resource that the session is not subscribed to as well."""
        session, uri = _session(call), self._uri(call)
        self.sessions.unsubscribe(session, uri)
        self.session_stream.remove_resource(session, uri)
        return Complete({})

    def _uri(self, call: Call) -> str:
        uri = call.params.get("uri")
        if not isinstance(uri, str):
            raise invalid_params("params.uri must be a string")
        return uri


def _session(call: Call) -> Session:
    if call.session is None:
        raise ProtocolError(
            ErrorCode.INVALID_REQUEST,
            "A subscription needs a session: send the Mcp-Session-Id of initialize",
            status=HTTPStatus.OK,
        )
    return call.session
