import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answerOf } from "../../api/api.ts";
import { ActionButton } from "../../kit/action-button.tsx";
import { ConfirmDialog } from "../../kit/confirm-dialog.tsx";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { useApi } from "../../session/session-context.tsx";
import type { ProviderKeyRecord } from "./provider-key-record.ts";
import { ReplaceDialog } from "./replace-dialog.tsx";

interface ProviderKeyActionsProps {
  readonly record: ProviderKeyRecord;
  readonly providerName: string;
}

/** What can be done with a provider key. */
export function ProviderKeyActions({ record, providerName }: ProviderKeyActionsProps) {
  const [asked, setAsked] = useState<"replace" | "delete">();
  const { id, disabled } = record;
  const { refresh, flip, remove } = useProviderKeyCalls(record);
  const close = () => setAsked(undefined);
  const verb = disabled ? "Enable" : "Disable";
  return (
    <div className="provider-key-actions">
      <ActionButton
        compact
        aria-label={`Replace the key of ${providerName}`}
        onPress={() => setAsked("replace")}
      >
        Replace
      </ActionButton>
      <ActionButton
        compact
        aria-label={`${verb} the key of ${providerName}`}
        isPending={flip.isPending}
        onPress={() => flip.mutate()}
      >
        {verb}
      </ActionButton>
      <ActionButton
        compact
        look="danger"
        aria-label={`Delete the key of ${providerName}`}
        onPress={() => setAsked("delete")}
      >
        Delete
      </ActionButton>
      {flip.error !== null && <FailureNotice failure={flip.error} />}
      <ReplaceDialog
        id={id}
        providerName={providerName}
        isOpen={asked === "replace"}
        onClose={close}
        onReplaced={refresh}
      />
      <DeleteDialog providerName={providerName} isOpen={asked === "delete"} onClose={close} act={remove} />
    </div>
  );
}

function useProviderKeyCalls({ id, disabled }: ProviderKeyRecord) {
  const api = useApi("management");
  const queries = useQueryClient();
  const path = { params: { path: { id } } };
  const refresh = () => {
    for (const queryKey of [["provider-keys"], ["providers"]]) void queries.invalidateQueries({ queryKey });
  };
  const flip = useMutation({
    mutationFn: () => answerOf(api.PATCH("/byok/{id}", { ...path, body: { disabled: !disabled } })),
    onSuccess: refresh,
  });
  const remove = () => answerOf(api.DELETE("/byok/{id}", path)).then(refresh);
  return { refresh, flip, remove };
}

interface DeleteDialogProps {
  readonly providerName: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly act: () => Promise<void>;
}

function DeleteDialog({ providerName, ...props }: DeleteDialogProps) {
  return (
    <ConfirmDialog {...props} title={`Delete the key of ${providerName}?`} verb="Delete the key">
      <p>
        No request that begins from now on uses it. Where the operator has a key there, that one serves on;
        else the provider is off for you.
      </p>
    </ConfirmDialog>
  );
}
