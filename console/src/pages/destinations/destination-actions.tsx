import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answerOf } from "../../api/api.ts";
import { ActionButton } from "../../kit/action-button.tsx";
import { ConfirmDialog } from "../../kit/confirm-dialog.tsx";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { useApi } from "../../session/session-context.tsx";
import { type DestinationRecord, titleOf } from "./destination-record.ts";
import { TestOutcome } from "./test-outcome.tsx";

/** What can be done with a destination, and what came of it. */
export function DestinationActions({ record }: { record: DestinationRecord }) {
  const [isAsked, setAsked] = useState(false);
  const { test, pause, resume, remove } = useDestinationCalls(record.id);
  const title = titleOf(record);
  const isPaused = !record.enabled || record.pause_reason !== null;
  const failure = test.error ?? pause.error ?? resume.error;
  return (
    <div className="stack destination-actions">
      <div className="row">
        <ActionButton
          compact
          aria-label={`Test ${title}`}
          isPending={test.isPending}
          onPress={() => test.mutate()}
        >
          Test
        </ActionButton>
        {!isPaused && (
          <ActionButton
            compact
            aria-label={`Pause ${title}`}
            isPending={pause.isPending}
            onPress={() => pause.mutate()}
          >
            Pause
          </ActionButton>
        )}
        {(isPaused || record.last_failure !== null) && (
          <ActionButton
            compact
            aria-label={`${isPaused ? "Resume" : "Retry now"} ${title}`}
            isPending={resume.isPending}
            onPress={() => resume.mutate(record.enabled)}
          >
            {isPaused ? "Resume" : "Retry now"}
          </ActionButton>
        )}
        <ActionButton compact look="danger" aria-label={`Delete ${title}`} onPress={() => setAsked(true)}>
          Delete
        </ActionButton>
      </div>
      {test.data !== undefined && <TestOutcome {...test.data} />}
      {failure !== null && <FailureNotice failure={failure} />}
      <DeleteDialog title={title} isOpen={isAsked} onClose={() => setAsked(false)} act={remove} />
    </div>
  );
}

interface DeleteDialogProps {
  readonly title: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly act: () => Promise<void>;
}

function DeleteDialog({ title, ...props }: DeleteDialogProps) {
  return (
    <ConfirmDialog {...props} title={`Delete ${title}?`} verb="Delete the destination">
      <p>Nothing more is delivered to it, not even what waits, and it never comes back.</p>
    </ConfirmDialog>
  );
}

function useDestinationCalls(id: string) {
  const api = useApi("management");
  const queries = useQueryClient();
  const path = { params: { path: { id } } };
  const onSettled = () => queries.invalidateQueries({ queryKey: ["destinations"] });
  const enable = (enabled: boolean) =>
    answerOf(api.PATCH("/observability/destinations/{id}", { ...path, body: { enabled } }));
  return {
    test: useMutation({
      mutationFn: async () => (await answerOf(api.POST("/observability/destinations/{id}/test", path))).data,
      onSettled,
    }),
    pause: useMutation({ mutationFn: () => enable(false), onSettled }),
    resume: useMutation({
      mutationFn: async (isEnabled: boolean) => {
        if (!isEnabled) await enable(true);
        await answerOf(api.POST("/observability/destinations/{id}/resume", path));
      },
      onSettled,
    }),
    remove: async () => {
      await answerOf(api.DELETE("/observability/destinations/{id}", path));
      void onSettled();
    },
  };
}
