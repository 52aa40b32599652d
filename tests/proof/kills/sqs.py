"""SQS over HTTP for functions in other processes, in the words that boto3 speaks; what it takes
goes on the wire."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, override

from tests.support.wire import Wire

_TARGET: Final = "X-Amz-Target"


@contextmanager
def sqs(wire: Wire) -> Iterator[int]:
    """Its port. The queues are ``http://127.0.0.1:<port>/<queue>``."""
    operations = {
        "AmazonSQS.SendMessage": wire.send_message,
        "AmazonSQS.SendMessageBatch": wire.send_message_batch,
    }

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked["QueueUrl"] = asked["QueueUrl"].rpartition("/")[2]
            said: Any = operations[self.headers[_TARGET]](**asked) or {}
            body = json.dumps(said).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        @override
        def log_message(self, *_: object) -> None:
            """The wire counts."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        @override
        def handle_error(self, *_: object) -> None:
            """Whoever was killed reads no answer."""

    server = Server(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever, args=(0.02,))
    serving.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
