import { CheckField, CheckGroup } from "../../kit/check-field.tsx";
import { SelectField } from "../../kit/select-field.tsx";
import { TextField } from "../../kit/text-field.tsx";
import { type DraftFaults, type KeyDraft, resets } from "./key-draft.ts";

interface SpendingFieldsProps {
  readonly draft: KeyDraft;
  readonly faults: DraftFaults;
  readonly onChange: (change: Partial<KeyDraft>) => void;
}

/** What an inference key may make, and for how much. */
export function SpendingFields({ draft, faults, onChange }: SpendingFieldsProps) {
  return (
    <>
      <CheckGroup label="May make">
        <div className="row">
          <CheckField label="Speech" isChecked={draft.speech} onChange={(speech) => onChange({ speech })} />
          <CheckField label="Images" isChecked={draft.images} onChange={(images) => onChange({ images })} />
        </div>
        {faults.scopes !== undefined && (
          <p className="fault" role="alert">
            {faults.scopes}
          </p>
        )}
      </CheckGroup>
      <div className="key-fields">
        <TextField
          label="Limit, US dollars"
          hint="The most it may spend; empty: no limit of its own."
          inputMode="decimal"
          value={draft.limit}
          onChange={(limit) => onChange({ limit })}
          fault={faults.limit}
        />
        <SelectField
          label="The limit starts anew"
          options={resets}
          value={draft.reset}
          isDisabled={draft.limit.trim() === ""}
          onChange={(reset) => onChange({ reset })}
        />
      </div>
      {draft.limit.trim() !== "" && (
        <CheckField
          label="Count what own provider keys serve"
          hint="Its list price then counts against the limit, though the provider charges it."
          isChecked={draft.countsOwn}
          onChange={(countsOwn) => onChange({ countsOwn })}
        />
      )}
    </>
  );
}
