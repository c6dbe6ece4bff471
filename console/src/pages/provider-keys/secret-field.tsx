import { TextField } from "../../kit/text-field.tsx";

/** What can stand in a header as a whole. */
const sendable = /^[\x21-\x7e]{1,4096}$/;

/** What is wrong with a key of a provider, in words; undefined when nothing is. */
export function secretFault(secret: string): string | undefined {
  if (secret.trim() === "") return "Paste the key here.";
  return sendable.test(secret.trim()) ? undefined : "A key is plain characters without blanks.";
}

interface SecretFieldProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly fault: string | undefined;
}

/** A provider's key, which is not seen while it is pasted. */
export function SecretField({ value, onChange, fault }: SecretFieldProps) {
  return (
    <TextField
      label="Key at the provider"
      hint="It is kept sealed and never shown again."
      type="password"
      autoComplete="off"
      value={value}
      onChange={onChange}
      fault={fault}
    />
  );
}
