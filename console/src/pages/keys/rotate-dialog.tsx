import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answerOf } from "../../api/api.ts";
import { ConfirmDialog } from "../../kit/confirm-dialog.tsx";
import { SelectField } from "../../kit/select-field.tsx";
import { useApi, useSession } from "../../session/session-context.tsx";
import type { FreshKey, KeyRecord } from "./key-record.ts";

const graces = [
  { id: "0", title: "No longer: it is refused at once" },
  { id: "3600", title: "For an hour" },
  { id: "86400", title: "For a day" },
  { id: "604800", title: "For a week" },
] as const;

interface RotateDialogProps {
  readonly record: KeyRecord;
  readonly isOwn: boolean;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly onRotated: (fresh: FreshKey) => void;
}

/** Puts a new key in the place of an old one. */
export function RotateDialog({ record, isOwn, isOpen, onClose, onRotated }: RotateDialogProps) {
  const api = useApi("management");
  const { session } = useSession();
  const queries = useQueryClient();
  const [grace, setGrace] = useState<(typeof graces)[number]["id"]>("0");
  const { hash, name } = record;
  const rotate = async () => {
    const options = { params: { path: { hash } }, body: { grace_s: Number(grace) } };
    const { key } = await answerOf(api.POST("/keys/{hash}/rotate", options));
    onRotated({ name, secret: key });
    if (isOwn) session.hold("management", key);
    void queries.invalidateQueries({ queryKey: ["keys"] });
  };
  return (
    <ConfirmDialog
      title={`Rotate ${name}?`}
      verb="Make the new key"
      look="plain"
      isOpen={isOpen}
      onClose={onClose}
      act={rotate}
    >
      <p>
        A new key takes its place, with the same name, scopes, limit and expiry. What both spend counts
        together.
      </p>
      {isOwn && <p>This tab manages with this key; it goes on with the new one.</p>}
      <SelectField label="The old key works on" options={graces} value={grace} onChange={setGrace} />
    </ConfirmDialog>
  );
}
