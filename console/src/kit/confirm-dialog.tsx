import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ActionButton } from "./action-button.tsx";
import { Dialog } from "./dialog.tsx";
import { FailureNotice } from "./failure-notice.tsx";

interface ConfirmDialogProps {
  readonly title: string;
  /** What the button says that does it. */
  readonly verb: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  /** Does it; when that fails the window stays and says why. */
  readonly act: () => Promise<unknown>;
  readonly look?: "danger" | "plain";
  /** What comes of it. */
  readonly children: ReactNode;
}

/** Asks before something is done that can't be taken back at once. */
export function ConfirmDialog({
  title,
  verb,
  isOpen,
  onClose,
  act,
  look = "danger",
  children,
}: ConfirmDialogProps) {
  const action = useMutation({ mutationFn: act, onSuccess: onClose, gcTime: 0 });
  const close = () => {
    action.reset();
    onClose();
  };
  return (
    <Dialog title={title} isOpen={isOpen} onClose={close}>
      {children}
      {action.error !== null && <FailureNotice failure={action.error} />}
      <div className="row">
        <ActionButton look={look} isPending={action.isPending} onPress={() => action.mutate()}>
          {verb}
        </ActionButton>
        <ActionButton look="quiet" onPress={close}>
          Cancel
        </ActionButton>
      </div>
    </Dialog>
  );
}
