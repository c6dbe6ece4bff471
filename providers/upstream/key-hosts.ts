import { OutboundHttpError } from "../../lib/http/outbound-error.ts";
import type { ProviderHttp } from "../provider-http.ts";

/**
 * A way out to one provider alone, since what goes this way may hold its key: to the origin of the base URL, and over TLS
 * to the hosts named and all below them. Anything else fails with kind connect.
 */
export function onlyTo(http: ProviderHttp, baseUrl: string, hosts: readonly string[] = []): ProviderHttp {
  const origin = URL.parse(baseUrl)?.origin;
  return {
    request: async (request) => {
      const url = URL.parse(request.url);
      const isBelow = hosts.some((host) => url?.hostname === host || url?.hostname.endsWith(`.${host}`));
      if (url !== null && (url.origin === origin || (isBelow && url.protocol === "https:"))) {
        return await http.request(request);
      }
      throw new OutboundHttpError("connect", "not a host of this provider");
    },
  };
}
