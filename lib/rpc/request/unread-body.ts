import { constants } from "node:http2";
import type { NodeRequest, NodeResponse } from "../port/port-listener.ts";

/** How long a client may go on sending what is not read any more, milliseconds; time for it to see the answer. */
const lingerMs = 2000;

/**
 * Sees to what is left of a request's body when its answer has ended: Node passes over what still comes, and lets it come
 * without end. Over HTTP/1.1 a connection on which a body goes on is ended, others can be used again. A stream of HTTP/2
 * is reset without error (RFC 9113, 8.1); its response is no measure of that, which finishes only when the stream closes.
 */
export function leaveUnread(request: NodeRequest, response: NodeResponse): void {
  const isHttp2 = "stream" in request;
  const carrier = isHttp2 ? request.stream : request.socket;
  (isHttp2 ? request.stream : response).once("finish", () => {
    if (request.complete) return;
    const linger = setTimeout(() => {
      if (request.complete) return;
      if (isHttp2) request.stream.close(constants.NGHTTP2_NO_ERROR);
      else request.socket.destroy();
    }, lingerMs);
    request.once("close", () => clearTimeout(linger));
    carrier.once("close", () => clearTimeout(linger));
  });
}
