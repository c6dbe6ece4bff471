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
  const [asked, setAsked] = useState<"rotate" | "disable" | "delete">();
  const { hash, name, disabled } = record;
  const { switchTo, enable, remove } = useKeyCalls(hash);
  const close = () => setAsked(undefined);
  return (
    <div className="key-actions">
      <ActionButton compact aria-label={`Rotate ${name}`} onPress={() => setAsked("rotate")}>
        Rotate
      </ActionButton>
      <ActionButton
        compact
        aria-label={`${disabled ? "Enable" : "Disable"} ${name}`}
        isPending={enable.isPending}
        onPress={() => (disabled ? enable.mutate() : setAsked("disable"))}
      >
        {disabled ? "Enable" : "Disable"}
      </ActionButton>
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
      <DisableDialog
        name={name}
        isOwn={isOwn}
        isOpen={asked === "disable"}
        onClose={close}
        act={() => switchTo(true)}
      />
      <DeleteDialog name={name} isOwn={isOwn} isOpen={asked === "delete"} onClose={close} act={remove} />
    </div>
  );
}

function useKeyCalls(hash: string) {
  const api = useApi("management");
  const queries = useQueryClient();
  const path = { params: { path: { hash } } };
  const change = async (call: Promise<unknown>) => {
    await call;
    void queries.invalidateQueries({ queryKey: ["keys"] });
  };
  const switchTo = (disabled: boolean) =>
    change(answerOf(api.PATCH("/keys/{hash}", { ...path, body: { disabled } })));
  const enable = useMutation({ mutationFn: () => switchTo(false) });
  const remove = () => change(answerOf(api.DELETE("/keys/{hash}", path)));
  return { switchTo, enable, remove };
}

interface QuestionProps {
  readonly name: string;
  readonly isOwn: boolean;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly act: () => Promise<void>;
}

function DisableDialog({ name, isOwn, ...props }: QuestionProps) {
  return (
    <ConfirmDialog {...props} title={`Disable ${name}?`} verb="Disable the key">
      <p>It is refused everywhere within 5 seconds, until it is enabled again.</p>
      {isOwn && <OwnWarning />}
    </ConfirmDialog>
  );
}

function DeleteDialog({ name, isOwn, ...props }: QuestionProps) {
  return (
    <ConfirmDialog {...props} title={`Delete ${name}?`} verb="Delete the key">
      <p>
        It is refused everywhere within 5 seconds, and never comes back. What it did stays in the activity.
      </p>
      {isOwn && <OwnWarning />}
    </ConfirmDialog>
  );
}

function OwnWarning() {
  return <p role="alert">This tab manages with this key: it will need another one.</p>;
}
