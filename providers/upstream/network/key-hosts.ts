import { OutboundHttpError } from "../../../lib/http/outbound-error.ts";
import type { OpenWebSocket, ProviderHttp } from "../../provider-http.ts";

/**
 * A way out to one provider alone, since what goes this way may hold its key: to the origin of the base URL, and over TLS
 * to the hosts named and all below them. Anything else fails with kind connect.
 */
export function onlyTo(http: ProviderHttp, baseUrl: string, hosts: readonly string[] = []): ProviderHttp {
  return {
    request: async (request) => {
      checkHost(request.url, baseUrl, hosts);
      return await http.request(request);
    },
  };
}

/** The same for websockets. */
export function webSocketsOnlyTo(
  open: OpenWebSocket,
  baseUrl: string,
  hosts: readonly string[] = [],
): OpenWebSocket {
  return async (request) => {
    checkHost(request.url, baseUrl, hosts);
    return await open(request);
  };
}

function checkHost(address: string, baseUrl: string, hosts: readonly string[]): void {
  const url = URL.parse(address);
  const isBelow = hosts.some((host) => url?.hostname === host || url?.hostname.endsWith(`.${host}`));
  const isOwn = url !== null && url.origin === URL.parse(baseUrl)?.origin;
  if (isOwn || (isBelow && url?.protocol === "https:")) return;
  throw new OutboundHttpError("connect", "not a host of this provider");
}
