import { Button } from "react-aria-components/Button";
import { Label } from "react-aria-components/Label";
import { ListBox, ListBoxItem } from "react-aria-components/ListBox";
import { Popover } from "react-aria-components/Popover";
import { Select, SelectValue } from "react-aria-components/Select";

interface SelectFieldProps<V extends string> {
  readonly label: string;
  /** The first one is what stands there until another is chosen. */
  readonly options: readonly { readonly id: V; readonly title: string }[];
  readonly value: V;
  readonly onChange: (value: V) => void;
  readonly isDisabled?: boolean;
}

/** A choice of one of several, by mouse, touch, arrows or the first letters. */
export function SelectField<V extends string>({
  label,
  options,
  value,
  onChange,
  isDisabled = false,
}: SelectFieldProps<V>) {
  return (
    <Select
      className="field"
      value={value}
      isDisabled={isDisabled}
      onChange={(chosen) => {
        const option = options.find(({ id }) => id === chosen);
        if (option !== undefined) onChange(option.id);
      }}
    >
      <Label>{label}</Label>
      <Button className="select-button">
        <SelectValue />
        <span aria-hidden="true">▾</span>
      </Button>
      <Popover className="popover">
        <ListBox items={options}>
          {({ id, title }) => (
            <ListBoxItem id={id} textValue={title} className="option">
              {title}
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </Select>
  );
}
