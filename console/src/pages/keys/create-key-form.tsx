import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { answerOf } from "../../api/api.ts";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { FormButtons } from "../../kit/form-buttons.tsx";
import { SelectField } from "../../kit/select-field.tsx";
import { TextField } from "../../kit/text-field.tsx";
import { useApi } from "../../session/session-context.tsx";
import { type KeyDraft, keyBody, lifetimes, newDraft } from "./key-draft.ts";
import type { FreshKey } from "./key-record.ts";
import { SpendingFields } from "./spending-fields.tsx";

interface CreateKeyFormProps {
  readonly onMade: (fresh: FreshKey) => void;
  readonly onCancel: () => void;
}

/** What a new key is to be. */
export function CreateKeyForm({ onMade, onCancel }: CreateKeyFormProps) {
  const api = useApi("management");
  const queries = useQueryClient();
  const [draft, setDraft] = useState(newDraft);
  const [isSent, setSent] = useState(false);
  const set = (change: Partial<KeyDraft>) => setDraft({ ...draft, ...change });
  const { body, faults } = keyBody(draft, Date.now());
  const shown = isSent ? faults : {};
  const make = useMutation({
    gcTime: 0,
    // The key itself stays out of what a mutation keeps.
    mutationFn: async (request: NonNullable<typeof body>) => {
      const { data, key } = await answerOf(api.POST("/keys", { body: request }));
      onMade({ name: data.name, secret: key });
      void queries.invalidateQueries({ queryKey: ["keys"] });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setSent(true);
    if (body !== undefined) make.mutate(body);
  };
  return (
    <form className="card create-key" onSubmit={submit} aria-labelledby="create-key">
      <h2 id="create-key">A new key</h2>
      <div className="key-fields">
        <TextField
          label="Name"
          hint="What it is for, such as the program that uses it."
          autoFocus
          value={draft.name}
          onChange={(name) => set({ name })}
          fault={shown.name}
        />
        <SelectField label="Kind" options={kinds} value={draft.kind} onChange={(kind) => set({ kind })} />
        <SelectField
          label="Expires"
          options={lifetimes}
          value={draft.lifetime}
          onChange={(lifetime) => set({ lifetime })}
        />
      </div>
      {draft.kind === "inference" && <SpendingFields draft={draft} faults={shown} onChange={set} />}
      {make.error !== null && <FailureNotice failure={make.error} />}
      <FormButtons verb="Create" isPending={make.isPending} onCancel={onCancel} />
    </form>
  );
}

const kinds = [
  { id: "inference", title: "Inference: speech, images" },
  { id: "management", title: "Management of the account" },
] as const;
