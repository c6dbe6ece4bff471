import { constants } from "node:http2";
import type { NodeRequest, NodeResponse } from "../port/port-listener.ts";

/** How long a client may go on sending what is not read any more, milliseconds; time for it to see the answer. */
const lingerMs = 2000;

/**
 * Sees to what is left of a request's body when its answer has ended. Over HTTP/1.1 Node passes it over, so that the
 * connection can be used again; a body that goes on ends the connection. A stream of HTTP/2 ends without error.
 */
export function leaveUnread(request: NodeRequest, response: NodeResponse): void {
  response.once("finish", () => {
    if ("stream" in request) {
      if (!request.complete) request.stream.close(constants.NGHTTP2_NO_ERROR);
      return;
    }
    if (request.complete) return;
    const { socket } = request;
    const linger = setTimeout(() => {
      if (!request.complete) socket.destroy();
    }, lingerMs);
    request.once("close", () => clearTimeout(linger));
    socket.once("close", () => clearTimeout(linger));
  });
}
