import { FieldError } from "react-aria-components/FieldError";
import { Input } from "react-aria-components/Input";
import { Label } from "react-aria-components/Label";
import { Text } from "react-aria-components/Text";
import { TextArea } from "react-aria-components/TextArea";
import {
  TextField as AriaTextField,
  type TextFieldProps as AriaTextFieldProps,
} from "react-aria-components/TextField";

interface TextFieldProps extends Omit<AriaTextFieldProps, "className" | "style" | "children"> {
  readonly label: string;
  /** What to put there, below the field. */
  readonly hint?: string;
  /** What is wrong with it; the field is invalid with one. */
  readonly fault?: string | undefined;
  readonly placeholder?: string;
  /** Lines of a text of several; one line without. */
  readonly lines?: number;
}

/** A field for text with its label, a hint and what is wrong with it, which keeps no form from being sent again. */
export function TextField({ label, hint, fault, placeholder = "", lines, ...props }: TextFieldProps) {
  return (
    <AriaTextField {...props} className="field" validationBehavior="aria" isInvalid={fault !== undefined}>
      <Label>{label}</Label>
      {lines === undefined ? (
        <Input placeholder={placeholder} />
      ) : (
        <TextArea placeholder={placeholder} rows={lines} />
      )}
      {hint !== undefined && (
        <Text slot="description" className="hint">
          {hint}
        </Text>
      )}
      <FieldError className="fault">{fault}</FieldError>
    </AriaTextField>
  );
}
