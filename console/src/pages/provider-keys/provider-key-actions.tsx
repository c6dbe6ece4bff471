import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answerOf } from "../../api/api.ts";
import { ActionButton } from "../../kit/action-button.tsx";
import { ConfirmDialog } from "../../kit/confirm-dialog.tsx";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { useApi } from "../../session/session-context.tsx";
import type { ProviderKeyRecord } from "./provider-keys-table.tsx";
import { ReplaceDialog } from "./replace-dialog.tsx";

interface ProviderKeyActionsProps {
  readonly record: ProviderKeyRecord;
  readonly providerName: string;
}

/** What can be done with a provider key. */
export function ProviderKeyActions({ record, providerName }: ProviderKeyActionsProps) {
  const api = useApi("management");
  const queries = useQueryClient();
  const [asked, setAsked] = useState<"replace" | "delete">();
  const { id, disabled } = record;
  const path = { params: { path: { id } } };
  const close = () => setAsked(undefined);
  const refresh = () => {
    void queries.invalidateQueries({ queryKey: ["provider-keys"] });
    void queries.invalidateQueries({ queryKey: ["providers"] });
  };
  const flip = useMutation({
    mutationFn: () => answerOf(api.PATCH("/byok/{id}", { ...path, body: { disabled: !disabled } })),
    onSuccess: refresh,
  });
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
      <ConfirmDialog
        title={`Delete the key of ${providerName}?`}
        verb="Delete the key"
        isOpen={asked === "delete"}
        onClose={close}
        act={async () => {
          await answerOf(api.DELETE("/byok/{id}", path));
          refresh();
        }}
      >
        <p>
          No request that begins from now on uses it. Where the operator has a key there, that one serves on;
          else the provider is off for you.
        </p>
      </ConfirmDialog>
    </div>
  );
}
