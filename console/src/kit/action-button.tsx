import type { ReactNode } from "react";
import { Button, type ButtonProps } from "react-aria-components/Button";

interface ActionButtonProps extends Omit<ButtonProps, "className" | "style" | "children" | "isPending"> {
  /** `primary` once a page at most, for what it is there for. */
  readonly look?: "primary" | "plain" | "quiet" | "danger";
  readonly compact?: boolean;
  /** What it began runs: it keeps the focus, and pressing it does nothing. */
  readonly isPending?: boolean;
  readonly children: ReactNode;
}

/**
 * A button. React Aria's own pending state is not used: its announcer leaves a nameless image behind for seconds, which axe
 * finds.
 */
export function ActionButton({
  look = "plain",
  compact = false,
  isPending = false,
  children,
  ...props
}: ActionButtonProps) {
  const { onPress: _press, ...rest } = props;
  const state = isPending ? ({ ...rest, type: "button", "aria-disabled": true } as const) : props;
  return (
    <Button {...state} className={`button ${look}${compact ? " compact" : ""}`}>
      {children}
    </Button>
  );
}
