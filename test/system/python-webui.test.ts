import { expect, test } from "vitest";
import { needPythonClients, runPythonClient } from "../contract/python-client.ts";
import { startSdapiUpstream } from "../upstreams/sdapi.ts";

test("a client for Python of AUTOMATIC1111's web UI takes the stand-in for one", async (context) => {
  needPythonClients(context);
  const auth = "ann:secret";
  const upstream = await startSdapiUpstream({ auth, patienceMs: 2_000 });
  try {
    const { baseUrl } = upstream;
    const outcomes = await runPythonClient<Record<string, unknown>>("webui_client.py", { baseUrl, auth });
    expect(outcomes).toEqual({
      draws: {
        images: [
          ["PNG", 64, 96, 7],
          ["PNG", 64, 96, 8],
        ],
        info: { seed: 1 },
      },
      "from image": [["PNG", 64, 64, 3]],
      progress: { looks: expect.any(Number), jobs: [1], images: [["PNG", 512, 512, 9]] },
      interrupt: [["PNG", 512, 512, 8]],
      "wrong password": [401, expect.stringContaining("Incorrect username or password")],
      "wrong model": [404, expect.stringContaining("Model not found")],
    });
    expect(upstream.jobs.map(({ state }) => state)).toEqual(["done", "done", "done", "interrupted"]);
  } finally {
    await upstream.close();
  }
});
