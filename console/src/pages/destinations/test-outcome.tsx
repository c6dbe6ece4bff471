import { Notice } from "../../kit/notice.tsx";

interface TestOutcomeProps {
  readonly ok: boolean;
  readonly status: number | null;
  readonly cause: string | null;
}

/** What came of a test. */
export function TestOutcome({ ok, status, cause }: TestOutcomeProps) {
  const answer = status === null ? "It gave no answer" : `It answered ${status}`;
  return ok ? (
    <Notice tone="good" title="The receiver took the test.">
      {answer}.
    </Notice>
  ) : (
    <Notice tone="bad" title="The test did not arrive.">
      {cause === null ? answer : `${answer}: ${cause}`}.
    </Notice>
  );
}
