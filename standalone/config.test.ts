import { describe, expect, test } from "vitest";
import { gatewaySettings, publicUrl } from "../gateway/config.ts";
import { synthesisLimits } from "../services/speech/config.ts";
import { readStandaloneConfig } from "./config.ts";

describe("the environment of the embedded default", () => {
  test("needs nothing", () => {
    const config = readStandaloneConfig({});
    expect(config).toMatchObject({
      HOST: "localhost",
      PORT: 8080,
      RPC_PORT: 8081,
      DATA_DIR: ".data",
      DATABASE_URL: undefined,
      DRAIN_DELAY_MS: 0,
      DRAIN_TIMEOUT_MS: 10_000,
      TLS_CERT_FILE: undefined,
      BOOTSTRAP_INFERENCE_KEY: undefined,
      CATALOG_DIR: undefined,
    });
    expect(publicUrl(config)).toBe("http://localhost:8080");
  });

  test("sets one limit for the longest speech request in gateway and service", () => {
    const config = readStandaloneConfig({ SPEECH_TIMEOUT_MS: "1234" });
    expect(gatewaySettings(config).speechTimeoutMs).toBe(1234);
    expect(synthesisLimits(config).timeoutMs).toBe(1234);
  });

  test("takes a database of the operator's own", () => {
    const DATABASE_URL = "postgres://media:secret@db.test/media";
    expect(readStandaloneConfig({ DATABASE_URL }).DATABASE_URL).toBe(DATABASE_URL);
  });

  test("goes on to the providers as it is", () => {
    const environment = { OPENAI_API_KEY: "sk-1", OPENAI_BASE_URL: "http://localhost:1" };
    expect(readStandaloneConfig(environment).environment).toEqual(environment);
  });

  test("names every variable that is malformed in one line, without its value", () => {
    const read = () =>
      readStandaloneConfig({ PORT: "x", RPC_PORT: "-1", DATABASE_URL: "mysql://u:secret@db" });
    expect(read).toThrow(
      /^configuration: (?=.*\bPORT must)(?=.*\bRPC_PORT must)(?=.*\bDATABASE_URL must)[^\n]*$/,
    );
    expect(read).not.toThrow(/secret/);
  });
});
