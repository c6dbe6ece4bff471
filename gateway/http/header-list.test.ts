import { expect, test } from "vitest";
import { headerList, ignoredParametersHeaders } from "./header-list.ts";

test("a list in a header holds any texts and never grows too long", () => {
  expect(headerList([])).toBe("");
  expect(ignoredParametersHeaders([])).toEqual({});
  expect(ignoredParametersHeaders(["speed"])).toEqual({ "x-ignored-parameters": "speed" });
  expect(headerList(["speed", "provider.options.acme.a,b\r\nX: 1"])).toBe(
    "speed,provider.options.acme.a%2Cb%0D%0AX%3A%201",
  );
  const many = headerList(Array.from({ length: 5000 }, (_, index) => `größe${index}`));
  expect(many.length).toBeLessThan(2049);
  expect(many).toMatch(/^gr%C3%B6%C3%9Fe0,gr%C3%B6%C3%9Fe1,/);
});
