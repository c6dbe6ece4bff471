import { SelectField } from "../../kit/select-field.tsx";
import { TextField } from "../../kit/text-field.tsx";
import { destinationTypes, type Typed, type TypeSetting } from "./destination-type.ts";

interface SettingFieldsProps {
  readonly typeId: string;
  readonly name: string;
  readonly typed: Typed;
  readonly headers: string;
  readonly faults: Typed;
  readonly setTypeId: (id: string) => void;
  readonly setName: (name: string) => void;
  readonly setTyped: (typed: Typed) => void;
  readonly setHeaders: (headers: string) => void;
}

/** The fields that a type of destination wants. */
export function SettingFields(props: SettingFieldsProps) {
  const { typeId, name, typed, headers, faults, setTypeId, setName, setTyped, setHeaders } = props;
  const settings = destinationTypes.find(({ id }) => id === typeId)?.settings ?? [];
  return (
    <>
      <div className="destination-fields">
        <SelectField label="Type" options={destinationTypes} value={typeId} onChange={setTypeId} />
        <TextField label="Name" value={name} onChange={setName} fault={faults.name} />
        {settings.map((setting) => (
          <SettingField
            key={`${typeId} ${setting.name}`}
            setting={setting}
            value={typed[setting.name] ?? ""}
            fault={faults[setting.name]}
            onChange={(value) => setTyped({ ...typed, [setting.name]: value })}
          />
        ))}
      </div>
      <TextField
        label="Headers of every delivery"
        hint="One a line, as name: value. May be left out; they are kept sealed."
        lines={2}
        autoComplete="off"
        value={headers}
        onChange={setHeaders}
        fault={faults.headers}
      />
    </>
  );
}

interface SettingFieldProps {
  readonly setting: TypeSetting;
  readonly value: string;
  readonly fault: string | undefined;
  readonly onChange: (value: string) => void;
}

function SettingField({ setting, value, fault, onChange }: SettingFieldProps) {
  const { label, hint, isSecret } = setting;
  return (
    <TextField
      label={label}
      {...(hint === undefined ? {} : { hint })}
      type={isSecret ? "password" : "text"}
      autoComplete="off"
      value={value}
      onChange={onChange}
      fault={fault}
    />
  );
}
