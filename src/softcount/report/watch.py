"""The page as a server on this machine alone: `softcount watch RUN...`.

The address has a token that nobody can guess, so that neither other users of the machine nor pages of
other sites in the same browser can read it. It answers to its own name only, and it changes nothing.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

from softcount.report.live import LiveRuns
from softcount.report.page import as_json, render

HOST = "127.0.0.1"
SECURITY = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class WatchServer(ThreadingHTTPServer):
    """Serves the page of some runs on a port of this machine; 0 takes any that is free."""

    daemon_threads = True

    def __init__(self, folders: list[Path], port: int = 0) -> None:
        self.runs = LiveRuns(folders)
        self.token = secrets.token_urlsafe(16)
        self.reading = threading.Lock()
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = cast(WatchServer, self.server)
        known = {f"{name}:{server.server_port}" for name in (HOST, "localhost")}
        if self.headers.get("Host") in known and self._asks_for(server, ""):
            with server.reading:
                page = render(server.runs.describe(), is_live=True)
            self._answer(HTTPStatus.OK, "text/html; charset=utf-8", page.encode())
        elif self.headers.get("Host") in known and self._asks_for(server, "data"):
            self._answer_data(server)
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"not here\n")

    def _asks_for(self, server: WatchServer, name: str) -> bool:
        """Whether this is the path of something behind the token; takes as long for a wrong one."""
        return secrets.compare_digest(self.path.encode(), f"/{server.token}/{name}".encode())

    def _answer_data(self, server: WatchServer) -> None:
        """Sends what there is to show, or that it is still what was sent before."""
        with server.reading:
            tag = f'"{hashlib.sha256(server.runs.stamp().encode()).hexdigest()[:32]}"'
            if self.headers.get("If-None-Match") == tag:
                server.runs.keep_asking()
                return self._answer(HTTPStatus.NOT_MODIFIED, "application/json", b"", tag)
            data = as_json(server.runs.describe())
        self._answer(HTTPStatus.OK, "application/json", data.encode(), tag)

    def _answer(self, status: HTTPStatus, kind: str, body: bytes, tag: str = "") -> None:
        self.send_response(status)
        headers = {**SECURITY, "Content-Type": kind, "Content-Length": str(len(body))}
        for name, value in (headers | ({"ETag": tag} if tag else {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: the page asks every second."""
