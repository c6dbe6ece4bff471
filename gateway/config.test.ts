import { describe, expect, test } from "vitest";
import { ConfigError } from "../lib/runtime/config.ts";
import { drainTimeoutMs } from "../lib/service/service-spec.ts";
import { gatewaySettings, publicUrl, readGatewayConfig } from "./config.ts";

const least = { SERVICE_KEY_FILE: "gateway.jwk" };

describe("the environment", () => {
  test("needs the key file alone", () => {
    const config = readGatewayConfig(least);
    expect({ ...config }).toMatchObject({
      PORT: 8080,
      HOST: "localhost",
      SPEECH_URL: "http://localhost:8101",
      IMAGE_URL: "http://localhost:8102",
      USAGE_URL: "http://localhost:8104",
      DESTINATION_URL: "http://localhost:8105",
    });
    expect(gatewaySettings(config)).toEqual({
      creditsUrl: "http://localhost:8080/credits",
      corsOrigins: [],
      maxBodyBytes: 32 << 20,
      maxInflightBodyBytes: 256 << 20,
      bodyTimeoutMs: 30_000,
      clientStallTimeoutMs: 60_000,
      speechTimeoutMs: 600_000,
      imageTimeoutMs: 180_000,
      keepAliveMs: 10_000,
      hasConsole: true,
    });
    expect(drainTimeoutMs(config)).toBe(605_000);
  });

  test("decides about addresses and limits", () => {
    const config = readGatewayConfig({
      ...least,
      PUBLIC_URL: "https://media.test/",
      CORS_ORIGINS: "https://a.test, https://b.test",
      MAX_BODY_MIB: "512",
      DRAIN_TIMEOUT_MS: "0",
    });
    expect(gatewaySettings(config)).toMatchObject({
      creditsUrl: "https://media.test/credits",
      corsOrigins: ["https://a.test", "https://b.test"],
      // A body of the allowed length always finds room, and leaves as much for others.
      maxInflightBodyBytes: 1024 << 20,
    });
    expect(drainTimeoutMs(config)).toBe(0);
    const billing = readGatewayConfig({ ...least, CREDITS_URL: "https://billing.test/add" });
    expect(gatewaySettings(billing).creditsUrl).toBe("https://billing.test/add");
    expect(publicUrl(readGatewayConfig({ ...least, TLS_CERT_FILE: "cert.pem", PORT: "8443" }))).toBe(
      "https://localhost:8443",
    );
  });

  test("is refused with every bad variable named", () => {
    const read = () => readGatewayConfig({ PORT: "x", MAX_BODY_MIB: "0", CREDITS_URL: "billing" });
    expect(read).toThrow(ConfigError);
    for (const name of ["PORT", "MAX_BODY_MIB", "CREDITS_URL", "SERVICE_KEY_FILE"])
      expect(read).toThrow(name);
  });
});
