import { useMutation } from "@tanstack/react-query";
import createClient from "openapi-fetch";
import { type FormEvent, useState } from "react";
import type { paths } from "../../gen/openapi.ts";
import { answerOf, apiUrl } from "../api/api.ts";
import { ApiFailure, failureSentence } from "../api/api-failure.ts";
import { ActionButton } from "../kit/action-button.tsx";
import { FailureNotice } from "../kit/failure-notice.tsx";
import { TextField } from "../kit/text-field.tsx";
import type { KeyKind } from "./session.ts";
import { useSession } from "./session-context.tsx";

/** What an Authorization header can carry. */
const sendable = /^[\x21-\x7e]+$/;

async function kindOf(secret: string): Promise<KeyKind> {
  const headers = { authorization: `Bearer ${secret}` };
  const client = createClient<paths>({ baseUrl: apiUrl(), headers, cache: "no-store", credentials: "omit" });
  const { data } = await answerOf(client.GET("/key"));
  return data.is_management_key ? "management" : "inference";
}

interface KeyFormProps {
  /** The kind that is needed here; a key of the other kind is taken too, and said to be one. */
  readonly needs?: KeyKind;
  readonly autoFocus?: boolean;
}

/** A field for a key, which is looked up before it is taken, so that it comes to its kind's place. */
export function KeyForm({ needs, autoFocus = false }: KeyFormProps) {
  const { session } = useSession();
  const [secret, setSecret] = useState("");
  const [malformed, setMalformed] = useState(false);
  const lookUp = useMutation({
    mutationFn: kindOf,
    onSuccess(kind, looked) {
      session.hold(kind, looked);
      setSecret("");
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const trimmed = secret.trim();
    setMalformed(!sendable.test(trimmed));
    if (sendable.test(trimmed)) lookUp.mutate(trimmed);
  };
  const { error, data: kind } = lookUp;
  const isRefused = error instanceof ApiFailure && error.status === 401;
  const fault = malformed ? "This is no key." : isRefused ? failureSentence(error) : undefined;
  const isOther = needs !== undefined && kind !== undefined && kind !== needs;
  return (
    <form className="stack key-form" onSubmit={submit}>
      <TextField
        label={needs === undefined ? "API key" : `${needs === "inference" ? "Inference" : "Management"} key`}
        hint="It stays in this tab until the tab is closed."
        type="password"
        autoComplete="off"
        placeholder="sk-…"
        value={secret}
        onChange={setSecret}
        fault={
          isOther
            ? `That is ${kind === "inference" ? "an inference" : "a management"} key: it is kept, but this needs the other kind.`
            : fault
        }
        autoFocus={autoFocus}
      />
      {error !== null && !isRefused && <FailureNotice failure={error} />}
      <div>
        <ActionButton look="primary" type="submit" isPending={lookUp.isPending}>
          Use this key
        </ActionButton>
      </div>
    </form>
  );
}
