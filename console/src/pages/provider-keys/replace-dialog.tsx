import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { answerOf } from "../../api/api.ts";
import { ActionButton } from "../../kit/action-button.tsx";
import { Dialog } from "../../kit/dialog.tsx";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { once } from "../../kit/once.ts";
import { useApi } from "../../session/session-context.tsx";
import { SecretField, secretFault } from "./secret-field.tsx";

interface ReplaceDialogProps {
  readonly id: string;
  readonly providerName: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly onReplaced: () => void;
}

/** Puts another key in the place of a stored one. */
export function ReplaceDialog({ id, providerName, isOpen, onClose, onReplaced }: ReplaceDialogProps) {
  const api = useApi("management");
  const [secret, setSecret] = useState("");
  const [fault, setFault] = useState<string>();
  const close = () => {
    setSecret("");
    setFault(undefined);
    replace.reset();
    onClose();
  };
  const replace = useMutation({
    mutationFn: ({ key }: { key: () => string }) =>
      answerOf(api.PATCH("/byok/{id}", { params: { path: { id } }, body: { key: key() } })),
    onSuccess: () => {
      onReplaced();
      close();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const wrong = secretFault(secret);
    setFault(wrong);
    if (wrong !== undefined) return;
    replace.mutate({ key: once(secret.trim()) });
    setSecret("");
  };
  return (
    <Dialog title={`Replace the key of ${providerName}`} isOpen={isOpen} onClose={close}>
      <form className="stack" onSubmit={submit}>
        <p>Requests use the new one within 5 seconds; name and state stay.</p>
        <SecretField value={secret} onChange={setSecret} fault={fault} />
        {replace.error !== null && <FailureNotice failure={replace.error} />}
        <div className="row">
          <ActionButton look="primary" type="submit" isPending={replace.isPending}>
            Replace the key
          </ActionButton>
          <ActionButton look="quiet" onPress={close}>
            Cancel
          </ActionButton>
        </div>
      </form>
    </Dialog>
  );
}
