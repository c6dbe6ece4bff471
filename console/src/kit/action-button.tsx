import type { ReactNode } from "react";
import { Button, type ButtonProps } from "react-aria-components/Button";

interface ActionButtonProps extends Omit<ButtonProps, "className" | "style" | "children"> {
  /** `primary` once a page at most, for what it is there for. */
  readonly look?: "primary" | "plain" | "quiet" | "danger";
  readonly compact?: boolean;
  readonly children: ReactNode;
}

/** A button; with `isPending` it says so to screen readers and can't be pressed again. */
export function ActionButton({ look = "plain", compact = false, children, ...props }: ActionButtonProps) {
  return (
    <Button {...props} className={`button ${look}${compact ? " compact" : ""}`}>
      {children}
    </Button>
  );
}
