import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { expect, test } from "vitest";
import { StartError } from "../../runtime/start-error.ts";
import { addressOf, type ChosenPort, hostInUrl, openPort, probePorts } from "./open-port.ts";

async function holder(): Promise<{ port: number; server: Server }> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, server };
}

test("a port that is in use is found by a probe, which names its variable and leaves the others free", async () => {
  const [taken, free] = [await holder(), await holder()];
  free.server.close();
  await once(free.server, "close");
  const ports: readonly ChosenPort[] = [
    { variable: "PORT", host: "localhost", port: free.port },
    { variable: "RPC_PORT", host: "127.0.0.1", port: taken.port },
  ];
  const refusal = new StartError(`RPC_PORT ${taken.port} on 127.0.0.1 is in use; set another one`);
  await expect(probePorts(ports)).rejects.toThrow(refusal);
  taken.server.close();
  await once(taken.server, "close");
  await probePorts(ports);
  await probePorts(ports);
});

test("two variables with one port are told apart, two that leave it to the system are not", async () => {
  const { port, server } = await holder();
  server.close();
  await once(server, "close");
  const both = (chosen: number) =>
    ["PORT", "RPC_PORT"].map((variable) => ({ variable, host: "127.0.0.1", port: chosen }));
  await expect(probePorts(both(port))).rejects.toThrow(/^RPC_PORT \d+ .* is in use/);
  await probePorts(both(0));
});

test("a host that can't be had is named, and what else goes wrong is passed on", async () => {
  const chosen = { variable: "PORT", port: 0 };
  await expect(probePorts([{ ...chosen, host: "192.0.2.1" }])).rejects.toThrow(
    new StartError("HOST 192.0.2.1 is no address of this machine; set another one"),
  );
  await expect(probePorts([{ ...chosen, host: "nowhere.invalid" }])).rejects.toThrow(
    new StartError("HOST nowhere.invalid is not a name that leads to an address; set another one"),
  );
  const bug = new Error("bug");
  await expect(openPort({ ...chosen, host: "127.0.0.1" }, async () => Promise.reject(bug))).rejects.toBe(bug);
});

test("names lead to the address that people write, addresses to themselves", async () => {
  expect(await addressOf("localhost")).toBe("127.0.0.1");
  for (const address of ["127.0.0.1", "0.0.0.0", "::1", "::"]) expect(await addressOf(address)).toBe(address);
  expect(["localhost", "127.0.0.1", "::1"].map(hostInUrl)).toEqual(["localhost", "127.0.0.1", "[::1]"]);
});
