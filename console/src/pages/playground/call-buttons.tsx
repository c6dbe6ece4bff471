import type { ReactNode } from "react";
import { ActionButton } from "../../kit/action-button.tsx";

interface CallButtonsProps {
  readonly verb: string;
  readonly isRunning: boolean;
  readonly isDisabled: boolean;
  readonly onStart: () => void;
  readonly onCancel: () => void;
  /** What it costs. */
  readonly children: ReactNode;
}

/** Starts a call and, while it runs, cancels it. */
export function CallButtons({ verb, isRunning, isDisabled, onStart, onCancel, children }: CallButtonsProps) {
  return (
    <div className="row">
      <ActionButton look="primary" isDisabled={isDisabled} isPending={isRunning} onPress={onStart}>
        {verb}
      </ActionButton>
      {isRunning && <ActionButton onPress={onCancel}>Cancel</ActionButton>}
      {children}
    </div>
  );
}
