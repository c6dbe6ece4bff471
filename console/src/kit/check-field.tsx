import "./check-field.css";
import type { ReactNode } from "react";

interface CheckFieldProps {
  readonly label: string;
  /** What ticking it means, below the label. */
  readonly hint?: string;
  readonly isChecked: boolean;
  readonly onChange: (isChecked: boolean) => void;
}

/** Yes or no. */
export function CheckField({ label, hint, isChecked, onChange }: CheckFieldProps) {
  return (
    <label className="check">
      <input type="checkbox" checked={isChecked} onChange={(event) => onChange(event.target.checked)} />
      <span>
        {label}
        {hint !== undefined && <span className="hint">{hint}</span>}
      </span>
    </label>
  );
}

/** Several of them under one name. */
export function CheckGroup({ label, children }: { label: string; children: ReactNode }) {
  return (
    <fieldset className="check-group">
      <legend>{label}</legend>
      {children}
    </fieldset>
  );
}
