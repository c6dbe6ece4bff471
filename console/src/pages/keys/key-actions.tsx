import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answerOf } from "../../api/api.ts";
import { ActionButton } from "../../kit/action-button.tsx";
import { ConfirmDialog } from "../../kit/confirm-dialog.tsx";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { useApi } from "../../session/session-context.tsx";
import type { FreshKey, KeyRecord } from "./key-record.ts";
import { RotateDialog } from "./rotate-dialog.tsx";

interface KeyActionsProps {
  readonly record: KeyRecord;
  /** Whether this tab calls with it. */
  readonly isOwn: boolean;
  readonly onRotated: (fresh: FreshKey) => void;
}

/** What can be done with a key. */
export function KeyActions({ record, isOwn, onRotated }: KeyActionsProps) {
  const api = useApi("management");
  const queries = useQueryClient();
  const [asked, setAsked] = useState<"rotate" | "disable" | "delete">();
  const { hash, name, disabled } = record;
  const path = { params: { path: { hash } } };
  const close = () => setAsked(undefined);
  const change = async (call: Promise<unknown>) => {
    await call;
    void queries.invalidateQueries({ queryKey: ["keys"] });
  };
  const switchTo = (off: boolean) =>
    change(answerOf(api.PATCH("/keys/{hash}", { ...path, body: { disabled: off } })));
  const enable = useMutation({ mutationFn: () => switchTo(false) });
  const own = isOwn && <p role="alert">This tab manages with this key: it will need another one.</p>;
  return (
    <div className="key-actions">
      <ActionButton compact aria-label={`Rotate ${name}`} onPress={() => setAsked("rotate")}>
        Rotate
      </ActionButton>
      {disabled ? (
        <ActionButton
          compact
          aria-label={`Enable ${name}`}
          isPending={enable.isPending}
          onPress={() => enable.mutate()}
        >
          Enable
        </ActionButton>
      ) : (
        <ActionButton compact aria-label={`Disable ${name}`} onPress={() => setAsked("disable")}>
          Disable
        </ActionButton>
      )}
      <ActionButton compact look="danger" aria-label={`Delete ${name}`} onPress={() => setAsked("delete")}>
        Delete
      </ActionButton>
      {enable.error !== null && <FailureNotice failure={enable.error} />}
      <RotateDialog
        record={record}
        isOwn={isOwn}
        isOpen={asked === "rotate"}
        onClose={close}
        onRotated={onRotated}
      />
      <ConfirmDialog
        title={`Disable ${name}?`}
        verb="Disable the key"
        isOpen={asked === "disable"}
        onClose={close}
        act={() => switchTo(true)}
      >
        <p>It is refused everywhere within 5 seconds, until it is enabled again.</p>
        {own}
      </ConfirmDialog>
      <ConfirmDialog
        title={`Delete ${name}?`}
        verb="Delete the key"
        isOpen={asked === "delete"}
        onClose={close}
        act={() => change(answerOf(api.DELETE("/keys/{hash}", path)))}
      >
        <p>
          It is refused everywhere within 5 seconds, and never comes back. What it did stays in the activity.
        </p>
        {own}
      </ConfirmDialog>
    </div>
  );
}
