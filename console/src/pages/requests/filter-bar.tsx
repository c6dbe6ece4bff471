import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { answerOf } from "../../api/api.ts";
import { ActionButton } from "../../kit/action-button.tsx";
import { SelectField } from "../../kit/select-field.tsx";
import { TextField } from "../../kit/text-field.tsx";
import { useApi } from "../../session/session-context.tsx";
import { type Filter, isFiltering, outcomes, periods } from "./filter.ts";

interface Option {
  readonly id: string;
  readonly title: string;
}

interface FilterBarProps {
  readonly filter: Filter;
  /** Puts other values into the address. */
  readonly onChange: (changed: Partial<Filter>) => void;
}

/** What is listed: chosen here, kept in the address. */
export function FilterBar({ filter, onChange }: FilterBarProps) {
  const { models, providers, keys } = useChoices();
  const choices = [
    ["model", "Model", "Any model", models],
    ["provider", "Provider", "Any provider", providers],
    ["key", "Key", "Any key", keys],
    ["outcome", "Outcome", "Any outcome", outcomes.map((id) => ({ id, title: id }))],
  ] as const;
  return (
    <search className="filters" aria-label="Filters">
      <SelectField
        label="Time"
        options={periods}
        value={periods.find(({ id }) => id === filter.period)?.id ?? ""}
        onChange={(period) => onChange({ period, from: "", to: "" })}
      />
      {filter.period === "between" && <BetweenFields filter={filter} onChange={onChange} />}
      {choices.map(([name, label, any, options]) => (
        <SelectField
          key={name}
          label={label}
          options={withChosen([{ id: "", title: any }, ...options], filter[name])}
          value={filter[name]}
          onChange={(value) => onChange({ [name]: value })}
        />
      ))}
      <TypedField label="Member (id)" value={filter.member} onDone={(member) => onChange({ member })} />
      <TypedField label="Session" value={filter.session} onDone={(session) => onChange({ session })} />
      {isFiltering(filter) && (
        <ActionButton look="quiet" onPress={() => onChange(filterNothing)}>
          Clear filters
        </ActionButton>
      )}
    </search>
  );
}

/** What takes every filter away. */
export const filterNothing: Partial<Filter> = {
  period: "",
  from: "",
  to: "",
  model: "",
  provider: "",
  key: "",
  outcome: "",
  member: "",
  session: "",
};

function BetweenFields({ filter, onChange }: FilterBarProps) {
  return (
    <>
      <TypedField
        label="From (UTC)"
        type="datetime-local"
        value={filter.from}
        onDone={(from) => onChange({ from })}
      />
      <TypedField
        label="Until (UTC)"
        type="datetime-local"
        value={filter.to}
        onDone={(to) => onChange({ to })}
      />
    </>
  );
}

interface TypedFieldProps {
  readonly label: string;
  readonly type?: "text" | "datetime-local";
  readonly value: string;
  readonly onDone: (value: string) => void;
}

/** A filter that is typed: it holds when it is left, or at Enter. */
function TypedField({ label, type = "text", value, onDone }: TypedFieldProps) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  const done = () => {
    if (typed.trim() !== value) onDone(typed.trim());
  };
  return (
    <TextField
      label={label}
      type={type}
      value={typed}
      onChange={setTyped}
      onBlur={done}
      onKeyDown={({ key }) => key === "Enter" && done()}
    />
  );
}

/** What the address asks for can be seen, though nothing lists it. */
function withChosen(options: readonly Option[], chosen: string): readonly Option[] {
  return options.some(({ id }) => id === chosen) ? options : [...options, { id: chosen, title: chosen }];
}

/** The models of the last 30 days, the providers and the keys that there are. */
function useChoices(): Readonly<Record<"models" | "providers" | "keys", readonly Option[]>> {
  const api = useApi("management");
  const models = useQuery({
    queryKey: ["activity", "models"],
    queryFn: async () => {
      const { data } = await answerOf(api.GET("/activity"));
      return [...new Set(data.map(({ model }) => model))].sort();
    },
  });
  const providers = useQuery({
    queryKey: ["providers", "management"],
    queryFn: async () => (await answerOf(api.GET("/providers"))).data,
  });
  const keys = useQuery({
    queryKey: ["keys", "to-choose"],
    queryFn: async () =>
      (await answerOf(api.GET("/keys", { params: { query: { include_disabled: true } } }))).data,
  });
  return {
    models: models.data?.map((id) => ({ id, title: id })) ?? [],
    providers: providers.data?.map(({ slug, name }) => ({ id: slug, title: name })) ?? [],
    keys: keys.data?.map(({ hash, name, label }) => ({ id: hash, title: `${name} (${label})` })) ?? [],
  };
}
