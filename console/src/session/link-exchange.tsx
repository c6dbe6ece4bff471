import { useMutation } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { ApiFailure } from "../api/api-failure.ts";
import { ActionButton } from "../kit/action-button.tsx";
import { FailureNotice } from "../kit/failure-notice.tsx";
import { Notice } from "../kit/notice.tsx";
import { TimeText } from "../kit/time-text.tsx";
import { redeemLinkCode } from "./console-link.ts";
import { useSession } from "./session-context.tsx";

/** Signs in by the code of a login link and says what came of it. */
export function LinkExchange({ code }: { code: string }) {
  const { session } = useSession();
  const [isShown, setShown] = useState(true);
  const { mutate, data, error } = useMutation({
    mutationFn: redeemLinkCode,
    onSuccess({ inference_key, management_key }) {
      session.hold("inference", inference_key);
      session.hold("management", management_key);
    },
  });
  const isSent = useRef(false);
  useEffect(() => {
    // A code serves once, and React may run this twice.
    if (!isSent.current) mutate(code);
    isSent.current = true;
  }, [code, mutate]);
  if (!isShown) return null;
  if (data !== undefined) {
    const close = (
      <ActionButton compact look="quiet" onPress={() => setShown(false)}>
        Close
      </ActionButton>
    );
    return (
      <Notice tone="good" title="You are signed in." actions={close}>
        This tab has an inference key and a management key until <TimeText at={data.expires_at} />.
      </Notice>
    );
  }
  if (error === null) return <Notice>Signing in …</Notice>;
  if (error instanceof ApiFailure && error.status === 404) {
    return (
      <Notice tone="bad" title="This link was used before, or its ten minutes are over.">
        For another one, where the gateway runs: <code>npm run admin -- console-link create</code>
      </Notice>
    );
  }
  return <FailureNotice failure={error} />;
}
