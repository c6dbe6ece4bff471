import type { TestStandalone } from "../support/processes/standalone.ts";

/** What the interface answers to the first account's management key. */
export async function manage<T>(
  { baseUrl, managementKey }: Pick<TestStandalone, "baseUrl" | "managementKey">,
  method: string,
  path: string,
  body?: object,
): Promise<T> {
  const headers = { authorization: `Bearer ${managementKey}`, "content-type": "application/json" };
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(`${baseUrl}/api/v1${path}`, { method, headers, ...content });
  return (await response.json()) as T;
}
