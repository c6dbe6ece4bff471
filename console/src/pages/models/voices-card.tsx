import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { answerOf } from "../../api/api.ts";
import { ActionButton } from "../../kit/action-button.tsx";
import { Badge } from "../../kit/badge.tsx";
import { EmptyState } from "../../kit/empty-state.tsx";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { MoneyText } from "../../kit/money-text.tsx";
import { useObjectUrl } from "../../kit/object-url.ts";
import { QueryView } from "../../kit/query-view.tsx";
import { TextField } from "../../kit/text-field.tsx";
import { useApi } from "../../session/session-context.tsx";
import { type SpeechModel, useVoices } from "./model-queries.ts";
import { mostToSpeak } from "./prices.ts";

const firstWords = "Hello. This is how I sound.";
const firstFew = 12;

/** The voices of a model, each to be heard; it is said before what that costs. */
export function VoicesCard({ model }: { model: SpeechModel }) {
  const api = useApi("inference");
  const voices = useVoices(api, model.id);
  const [input, setInput] = useState(firstWords);
  const speech = useMutation({
    mutationFn: (voice: string) =>
      answerOf(api.POST("/audio/speech", { body: { model: model.id, input, voice }, parseAs: "blob" })),
  });
  const url = useObjectUrl(speech.data);
  return (
    <section className="card" aria-labelledby="voices">
      <h2 id="voices">Voices</h2>
      <TextField label="Text to hear" value={input} onChange={setInput} maxLength={200} />
      <CostLine model={model} characters={[...input].length} />
      {speech.error !== null && <FailureNotice failure={speech.error} />}
      {url !== undefined && (
        // biome-ignore lint/a11y/useMediaCaption: what it says stands in the field above.
        <audio controls autoPlay src={url} aria-label={`Voice ${speech.variables ?? ""}`} />
      )}
      <QueryView query={voices} lines={5}>
        {(all) => (
          <VoiceList
            voices={all}
            pending={speech.isPending ? speech.variables : undefined}
            isMute={input.trim() === ""}
            onHear={speech.mutate}
          />
        )}
      </QueryView>
    </section>
  );
}

function CostLine({ model, characters }: { model: SpeechModel; characters: number }) {
  const most = mostToSpeak(characters, model.endpoints);
  return (
    <p className="soft small">
      {most === undefined ? (
        "To hear a voice costs what the prices above say: its tokens are counted afterwards."
      ) : (
        <>
          To hear a voice costs at most <MoneyText usd={most} />, {characters} characters each time.
        </>
      )}
    </p>
  );
}

interface VoiceListProps {
  readonly voices: NonNullable<ReturnType<typeof useVoices>["data"]>;
  /** The voice that is on its way. */
  readonly pending: string | undefined;
  readonly isMute: boolean;
  readonly onHear: (voice: string) => void;
}

function VoiceList({ voices, pending, isMute, onHear }: VoiceListProps) {
  const [isWhole, setWhole] = useState(false);
  if (voices.length === 0) {
    return (
      <EmptyState title="It lists no voices">
        <p>It takes any string as one: its provider says which there are.</p>
      </EmptyState>
    );
  }
  const shown = isWhole ? voices : voices.slice(0, firstFew);
  return (
    <>
      <ul className="voice-list" aria-label="Voices">
        {shown.map(({ id, name, language, gender, is_default }) => (
          <li key={id}>
            <div className="voice">
              <strong>{name}</strong> {is_default && <Badge tone="good">default</Badge>}
              <div className="soft small">
                {[id === name ? "" : id, language, gender].filter(Boolean).join(" · ")}
              </div>
            </div>
            <ActionButton
              compact
              aria-label={`Hear ${name}`}
              isDisabled={isMute || (pending !== undefined && pending !== id)}
              isPending={pending === id}
              onPress={() => onHear(id)}
            >
              {pending === id ? "Speaking …" : "Hear"}
            </ActionButton>
          </li>
        ))}
      </ul>
      {shown.length < voices.length && (
        <div>
          <ActionButton onPress={() => setWhole(true)}>Show all {voices.length} voices</ActionButton>
        </div>
      )}
    </>
  );
}
