import { ApiFailure, failureSentence } from "../api/api-failure.ts";
import { ActionButton } from "./action-button.tsx";
import { Notice } from "./notice.tsx";

/** What went wrong, in words, with all that the interface says of it; `onRetry` offers another try. */
export function FailureNotice({ failure, onRetry }: { failure: unknown; onRetry?: () => void }) {
  const detail = failure instanceof ApiFailure ? failure.detail : undefined;
  const { issues = [], retry_after_s: seconds, provider_name: provider } = detail?.metadata ?? {};
  const requestId = failure instanceof ApiFailure ? failure.requestId : undefined;
  return (
    <Notice
      tone="bad"
      title={failureSentence(failure)}
      actions={onRetry && <ActionButton onPress={onRetry}>Try again</ActionButton>}
    >
      {issues.length > 0 && (
        <ul>
          {issues.map(({ path, message }) => (
            <li key={`${path} ${message}`}>
              {path !== "" && <code>{path}</code>} {message}
            </li>
          ))}
        </ul>
      )}
      {provider !== undefined && <p>Provider: {provider}</p>}
      {seconds !== undefined && <p>Another try may succeed in {seconds} s.</p>}
      {detail !== undefined && (
        <p className="request-id">
          {detail.code} {detail.metadata?.reason}
          {requestId !== undefined && ` · request ${requestId}`}
        </p>
      )}
    </Notice>
  );
}
