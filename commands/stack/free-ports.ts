import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";

/** Ports of the loopback interface, all different, that were free a moment ago; another may take one meanwhile. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "localhost"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}

/** One of them. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}
