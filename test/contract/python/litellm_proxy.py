"""LiteLLM's proxy on a free port of the loopback, configured by the first line of stdin; tells its port and ends with stdin."""

import json
import logging
import os
import sys
import tempfile
import threading
import time

# What others print is not the answer.
answers, sys.stdout = sys.stdout, sys.stderr
with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
    config.write(sys.stdin.readline())
    config.flush()
    os.environ["CONFIG_FILE_PATH"] = config.name
    import uvicorn
    from litellm.proxy.proxy_server import app

    logging.disable(logging.CRITICAL)

    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, loop="asyncio", log_level="error"))

    def serve_stdin():
        while not server.started:
            time.sleep(0.05)
        port = server.servers[0].sockets[0].getsockname()[1]
        print(json.dumps({"port": port}), file=answers, flush=True)
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=serve_stdin, daemon=True).start()
    server.run()
