import { expect, test } from "vitest";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import { Founding } from "./founding.ts";

const never = new AbortController().signal;
const unknown = new DomainError(ErrorReason.KEY_UNKNOWN, "no such key");

/** A look-up that gives these in turn, and how often it was asked. */
function lookUp(...answers: readonly (string | Error)[]) {
  let asked = 0;
  return {
    asked: () => asked,
    async find() {
      const answer = answers[asked++];
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
}

test("a key that is not known is looked up again once the account is there", async () => {
  const founded = Promise.withResolvers<void>();
  const founding = new Founding(founded.promise);
  const [known, foreign, disabled] = [
    lookUp(unknown, "who"),
    lookUp(unknown, unknown),
    lookUp(new DomainError(ErrorReason.KEY_DISABLED, "disabled")),
  ];
  const answers = Promise.allSettled([known, foreign].map(({ find }) => founding.whenFounded(find, never)));
  await expect(founding.whenFounded(disabled.find, never)).rejects.toMatchObject({
    reason: ErrorReason.KEY_DISABLED,
  });
  expect([founding.isOver, known.asked(), foreign.asked()]).toEqual([false, 1, 1]);
  founded.resolve();
  expect(await answers).toEqual([
    { status: "fulfilled", value: "who" },
    { status: "rejected", reason: unknown },
  ]);
  expect(founding.isOver).toBe(true);
});

test("who can't wait is told to come again", async () => {
  const founding = new Founding(new Promise(() => undefined));
  const leaving = new AbortController();
  const answer = founding.whenFounded(lookUp(unknown).find, leaving.signal);
  leaving.abort();
  await expect(answer).rejects.toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
});

test("without an account to wait for a key that is not known is refused at once", async () => {
  const one = lookUp(unknown);
  await expect(new Founding().whenFounded(one.find, never)).rejects.toBe(unknown);
  expect(one.asked()).toBe(1);
});
