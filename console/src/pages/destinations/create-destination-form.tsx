import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { components } from "../../../gen/openapi.ts";
import { answerOf } from "../../api/api.ts";
import { CheckField, CheckGroup } from "../../kit/check-field.tsx";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { FormButtons } from "../../kit/form-buttons.tsx";
import { once } from "../../kit/once.ts";
import { useApi } from "../../session/session-context.tsx";
import { configOf, destinationTypes, faultsOf, type Typed, withoutSecrets } from "./destination-type.ts";
import { SettingFields } from "./setting-fields.tsx";

const tellings = [
  { id: "broadcast_generation_cost", label: "What each request cost" },
  { id: "broadcast_generation_identity", label: "Key name, member and end user" },
  { id: "broadcast_generation_request_context", label: "Session id and trace" },
] as const;

type Told = Partial<Record<(typeof tellings)[number]["id"], boolean>>;

/** Makes a destination. Secrets leave the form when they are sent, whatever comes of it. */
export function CreateDestinationForm({ onEnd }: { onEnd: () => void }) {
  const [typeId, setTypeId] = useState("webhook");
  const [name, setName] = useState("");
  const [typed, setTyped] = useState<Typed>({});
  const [headers, setHeaders] = useState("");
  const [told, setTold] = useState<Told>({});
  const [faults, setFaults] = useState<Typed>({});
  const make = useMake(onEnd);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const type = destinationTypes.find(({ id }) => id === typeId);
    if (type === undefined) return;
    const wrong = { ...faultsOf(type, typed, headers), ...(name.trim() ? {} : { name: "Give it a name." }) };
    setFaults(wrong);
    if (Object.keys(wrong).length > 0) return;
    make.mutate({ type: type.id, name: name.trim(), ...told, config: once(configOf(type, typed, headers)) });
    setTyped(withoutSecrets(type, typed));
    setHeaders("");
  };
  return (
    <form className="card" onSubmit={submit} aria-labelledby="create-destination">
      <h2 id="create-destination">A new destination</h2>
      <SettingFields
        {...{ typeId, name, typed, headers, faults, setName, setTyped, setHeaders }}
        setTypeId={(id) => {
          setTypeId(id);
          setTyped({});
          setFaults({});
        }}
      />
      <TellingFields told={told} onChange={setTold} />
      {make.error !== null && (
        <>
          <FailureNotice failure={make.error} />
          <p className="soft">
            Secrets and headers were not kept in this page: type them again for another try.
          </p>
        </>
      )}
      <FormButtons verb="Create" isPending={make.isPending} onCancel={onEnd} />
    </form>
  );
}

function TellingFields({ told, onChange }: { told: Told; onChange: (told: Told) => void }) {
  return (
    <CheckGroup label="It is also told">
      {tellings.map(({ id, label }) => (
        <CheckField
          key={id}
          label={label}
          isChecked={told[id] === true}
          onChange={(isTold) => onChange({ ...told, [id]: isTold })}
        />
      ))}
    </CheckGroup>
  );
}

type NewDestination = Omit<components["schemas"]["DestinationRequest"], "config"> & {
  readonly config: () => Record<string, unknown>;
};

function useMake(onEnd: () => void) {
  const api = useApi("management");
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ config, ...rest }: NewDestination) =>
      answerOf(api.POST("/observability/destinations", { body: { ...rest, config: config() } })),
    onSuccess: () => {
      onEnd();
      void queries.invalidateQueries({ queryKey: ["destinations"] });
    },
  });
}
