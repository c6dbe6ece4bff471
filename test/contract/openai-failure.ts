import { APIError } from "openai";

/** The error of a call that must fail at the interface. */
export async function openAiFailure(call: PromiseLike<unknown>): Promise<APIError> {
  const outcome = await Promise.resolve(call).then(
    () => new Error("no error"),
    (thrown: unknown) => thrown,
  );
  if (outcome instanceof APIError) return outcome;
  throw outcome;
}
