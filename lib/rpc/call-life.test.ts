import { createContextValues } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { beginCallLife, CallLife, callLifeOf } from "./call-life.ts";

describe("the life of a call", () => {
  it("is over when the call has ended", () => {
    const life = new CallLife();
    let freed = 0;
    life.whenOver(() => freed++);
    expect(freed).toBe(0);
    life.end();
    life.end();
    expect(freed).toBe(1);
  });

  it("lasts until the work that was begun for the call has settled, failed work included", async () => {
    const life = new CallLife();
    const first = Promise.withResolvers<void>();
    const second = Promise.withResolvers<void>();
    let freed = 0;
    life.whenOver(() => freed++);
    life.keepUntil(first.promise);
    life.keepUntil(second.promise);
    life.end();
    second.reject(new Error("failed"));
    await second.promise.catch(() => undefined);
    expect(freed).toBe(0);
    first.resolve();
    await first.promise;
    await Promise.resolve();
    expect(freed).toBe(1);
  });

  it("frees at once what is asked to be freed after it", () => {
    const life = new CallLife();
    life.end();
    let freed = 0;
    life.whenOver(() => freed++);
    expect(freed).toBe(1);
  });

  it("ends with the signal of its call and is the same for all who ask", () => {
    const contextValues = createContextValues();
    const controller = new AbortController();
    const life = callLifeOf(contextValues);
    beginCallLife({ contextValues, signal: controller.signal });
    expect(callLifeOf(contextValues)).toBe(life);
    let freed = 0;
    life.whenOver(() => freed++);
    controller.abort();
    expect(freed).toBe(1);
  });
});
