import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { answerOf } from "../../api/api.ts";
import { ActionButton } from "../../kit/action-button.tsx";
import { EmptyState } from "../../kit/empty-state.tsx";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { FormButtons } from "../../kit/form-buttons.tsx";
import { once } from "../../kit/once.ts";
import { SelectField } from "../../kit/select-field.tsx";
import { TextField } from "../../kit/text-field.tsx";
import { useApi } from "../../session/session-context.tsx";
import { SecretField, secretFault } from "./secret-field.tsx";

interface AddProviderKeyFormProps {
  /** Those that take a key and have none yet. */
  readonly providers: readonly { readonly slug: string; readonly name: string }[];
  readonly onEnd: () => void;
}

/** Stores a key at a provider. What was typed leaves the form when it is sent, whatever comes of it. */
export function AddProviderKeyForm({ providers, onEnd }: AddProviderKeyFormProps) {
  const [chosen, setChosen] = useState<string>();
  const [name, setName] = useState("");
  const [secret, setSecret] = useState("");
  const [fault, setFault] = useState<string>();
  const provider = providers.find(({ slug }) => slug === chosen)?.slug ?? providers[0]?.slug;
  const add = useAdd(onEnd);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const wrong = secretFault(secret);
    setFault(wrong);
    if (wrong !== undefined || provider === undefined) return;
    add.mutate({ provider, name: name.trim() || null, key: once(secret.trim()) });
    setSecret("");
  };
  if (provider === undefined && !add.isPending) {
    return (
      <EmptyState title="Every provider that takes a key has one">
        <p>Replace a key below, or delete it first.</p>
        <ActionButton onPress={onEnd}>Close</ActionButton>
      </EmptyState>
    );
  }
  return (
    <form className="card" onSubmit={submit} aria-labelledby="add-provider-key">
      <h2 id="add-provider-key">A key of your own</h2>
      <div className="provider-key-fields">
        <SelectField
          label="Provider"
          options={providers.map(({ slug, name: title }) => ({ id: slug, title }))}
          value={provider ?? ""}
          onChange={setChosen}
        />
        <SecretField value={secret} onChange={setSecret} fault={fault} />
        <TextField label="Name" hint="For people; may be left out." value={name} onChange={setName} />
      </div>
      {add.error !== null && (
        <>
          <FailureNotice failure={add.error} />
          <p className="soft">The key was not kept in this page: paste it again for another try.</p>
        </>
      )}
      <FormButtons verb="Store the key" isPending={add.isPending} onCancel={onEnd} />
    </form>
  );
}

interface NewProviderKey {
  readonly provider: string;
  readonly name: string | null;
  readonly key: () => string;
}

function useAdd(onEnd: () => void) {
  const api = useApi("management");
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ key, ...rest }: NewProviderKey) =>
      answerOf(api.POST("/byok", { body: { ...rest, key: key() } })),
    onSuccess: async () => {
      onEnd();
      await Promise.all([
        queries.invalidateQueries({ queryKey: ["provider-keys"] }),
        queries.invalidateQueries({ queryKey: ["providers"] }),
      ]);
    },
  });
}
