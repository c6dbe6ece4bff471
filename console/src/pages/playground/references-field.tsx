import { useState } from "react";
import { DropZone } from "react-aria-components/DropZone";
import { FileTrigger } from "react-aria-components/FileTrigger";
import { Text } from "react-aria-components/Text";
import { ActionButton } from "../../kit/action-button.tsx";
import { useObjectUrl } from "../../kit/object-url.ts";

const mediaTypes = ["image/png", "image/jpeg", "image/webp"];
const mostBytes = 20 * 1024 * 1024;

interface ReferencesFieldProps {
  readonly files: readonly File[];
  /** How many the model takes. */
  readonly most: number;
  readonly onChange: (files: readonly File[]) => void;
}

/** Images to start from: dropped, pasted, or chosen. */
export function ReferencesField({ files, most, onChange }: ReferencesFieldProps) {
  const [fault, setFault] = useState<string>();
  const add = (more: readonly File[]) => {
    const good = more.filter(({ type, size }) => mediaTypes.includes(type) && size <= mostBytes);
    setFault(faultOf(more.length - good.length, files.length + good.length, most));
    onChange([...files, ...good].slice(0, most));
  };
  return (
    <div className="field">
      <span className="label">Start from</span>
      <DropZone
        className="drop-zone"
        getDropOperation={(types) => (mediaTypes.some((type) => types.has(type)) ? "copy" : "cancel")}
        onDrop={({ items }) => {
          const dropped = items.flatMap((item) => (item.kind === "file" ? [item.getFile()] : []));
          void Promise.all(dropped).then(add);
        }}
      >
        <Text slot="label">Drop images here, or</Text>
        <FileTrigger
          acceptedFileTypes={mediaTypes}
          allowsMultiple
          onSelect={(chosen) => add(chosen === null ? [] : [...chosen])}
        >
          <ActionButton compact>Choose files</ActionButton>
        </FileTrigger>
      </DropZone>
      {fault !== undefined && (
        <span className="fault" role="alert">
          {fault}
        </span>
      )}
      {files.length > 0 && (
        <ul className="references" aria-label="Start from">
          {files.map((file, index) => (
            <ReferenceItem
              // biome-ignore lint/suspicious/noArrayIndexKey: the same file may stand there twice.
              key={`${file.name} ${index}`}
              file={file}
              onRemove={() => onChange(files.filter((_, other) => other !== index))}
            />
          ))}
        </ul>
      )}
    </div>
  );
}

function faultOf(refused: number, count: number, most: number): string | undefined {
  if (refused > 0) return "Only PNG, JPEG and WebP of at most 20 MiB are taken.";
  return count > most ? `The model takes ${most} at most.` : undefined;
}

function ReferenceItem({ file, onRemove }: { file: File; onRemove: () => void }) {
  const url = useObjectUrl(file);
  return (
    <li>
      {url !== undefined && <img src={url} alt="" />}
      <span className="reference-name">{file.name}</span>
      <ActionButton compact look="quiet" aria-label={`Remove ${file.name}`} onPress={onRemove}>
        Remove
      </ActionButton>
    </li>
  );
}

/** A file as a data URL, as a request has it. */
export function dataUrlOf(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
