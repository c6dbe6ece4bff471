import { useState } from "react";
import { QueryView } from "../../kit/query-view.tsx";
import { SelectField } from "../../kit/select-field.tsx";
import { TextField } from "../../kit/text-field.tsx";
import { CallButtons } from "./call-buttons.tsx";
import { speechCode } from "./call-code.ts";
import { CallCodeCard } from "./call-code-card.tsx";
import { type SpeechModel, useSpeechModels } from "./models.ts";
import { mostSpeechCost } from "./most-cost.ts";
import { MostCostText } from "./most-cost-text.tsx";
import { NoModels } from "./no-models.tsx";
import { SpeechOutcome } from "./speech-outcome.tsx";
import { runSpeech, type SpeechRequest, type SpeechRun } from "./speech-run.ts";
import { useChosen } from "./use-chosen.ts";
import { useRun } from "./use-run.ts";

const firstWords =
  "The gateway speaks. Type what you want to hear, choose a voice, and listen while it is made.";
const speeds = ["1", "0.25", "0.5", "0.75", "1.25", "1.5", "2", "3", "4"].map((id) => ({
  id,
  title: `${id} ×`,
}));

/** Speech, with all that can be set. */
export function SpeechPanel() {
  const models = useSpeechModels();
  return (
    <QueryView query={models} lines={8}>
      {(all) => {
        const [first] = all;
        return first === undefined ? (
          <NoModels verb="speaks" />
        ) : (
          <SpeechForm models={[first, ...all.slice(1)]} />
        );
      }}
    </QueryView>
  );
}

function SpeechForm({ models }: { models: readonly [SpeechModel, ...SpeechModel[]] }) {
  const [model, choose] = useChosen(models);
  const [input, setInput] = useState(firstWords);
  const [voice, setVoice] = useState("");
  const [speed, setSpeed] = useState("1");
  const [format, setFormat] = useState("mp3");
  const { run, start, cancel } = useRun<SpeechRequest, SpeechRun>(runSpeech);
  const formats = model.response_formats.toSorted().map((id) => ({ id, title: formatTitles[id] }));
  const chosenFormat = formats.find(({ id }) => id === format)?.id ?? formats[0]?.id ?? "mp3";
  const chosenVoice = voiceOf(model, voice);
  const request: SpeechRequest = {
    model: model.id,
    ...(chosenVoice !== "" && { voice: chosenVoice }),
    input,
    response_format: chosenFormat,
    ...(speed !== "1" && { speed: Number(speed) }),
  };
  const prices = model.endpoints.map(({ pricing }) => pricing);
  const fault = inputFault(model, input);
  return (
    <div className="playground-pair">
      <section className="card" aria-labelledby="speech-call">
        <h2 id="speech-call">What to say</h2>
        <TextField label="Text" lines={6} value={input} onChange={setInput} fault={fault} />
        <SelectField label="Model" options={titled(models)} value={model.id} onChange={choose} />
        <VoiceField model={model} value={chosenVoice} onChange={setVoice} />
        <div className="fields">
          <SelectField label="Speed" options={speeds} value={speed} onChange={setSpeed} />
          <SelectField label="Format" options={formats} value={chosenFormat} onChange={setFormat} />
        </div>
        <CallButtons
          verb="Speak"
          isRunning={run?.state === "running"}
          isDisabled={fault !== undefined || input.trim() === ""}
          onStart={() => start(request)}
          onCancel={cancel}
        >
          <MostCostText most={mostSpeechCost(prices, input)} prices={prices[0] ?? []} />
        </CallButtons>
      </section>
      <SpeechOutcome run={run} />
      <CallCodeCard id="speech-code" codeOf={(target) => speechCode(target, request)} />
    </div>
  );
}

const formatTitles = { mp3: "mp3", pcm: "pcm (raw samples)" } as const;

function titled(models: readonly SpeechModel[]) {
  return models.map(({ id, name }) => ({ id, title: `${name} (${id})` }));
}

function voiceOf({ supported_voices: voices, default_voice: usual }: SpeechModel, wished: string): string {
  if (voices.length === 0 || voices.includes(wished)) return wished;
  return usual ?? voices[0] ?? "";
}

function inputFault({ max_input_characters: most }: SpeechModel, input: string): string | undefined {
  const characters = [...input].length;
  if (characters <= most) return undefined;
  return `${characters.toLocaleString()} characters: the model takes ${most.toLocaleString()}.`;
}

interface VoiceFieldProps {
  readonly model: SpeechModel;
  readonly value: string;
  readonly onChange: (voice: string) => void;
}

function VoiceField({ model: { voices }, value, onChange }: VoiceFieldProps) {
  if (voices.length === 0) return <TextField label="Voice" value={value} onChange={onChange} />;
  const options = voices.map(({ id, name, language }) => {
    const more = [name, language].filter((word) => word !== null && word !== id).join(", ");
    return { id, title: more === "" ? id : `${id} (${more})` };
  });
  return <SelectField label="Voice" options={options} value={value} onChange={onChange} />;
}
