import { ActionButton } from "./action-button.tsx";

interface FormButtonsProps {
  /** What the button says that sends it. */
  readonly verb: string;
  readonly isPending: boolean;
  readonly onCancel: () => void;
}

/** What ends a form: it is sent, or given up. */
export function FormButtons({ verb, isPending, onCancel }: FormButtonsProps) {
  return (
    <div className="row">
      <ActionButton look="primary" type="submit" isPending={isPending}>
        {verb}
      </ActionButton>
      <ActionButton look="quiet" onPress={onCancel}>
        Cancel
      </ActionButton>
    </div>
  );
}
