import { apiUrl } from "../../api/api.ts";
import { CodeBlock } from "../../kit/code-block.tsx";
import { TabGroup } from "../../kit/tab-group.tsx";
import { maskedKey } from "../../session/session.ts";
import { useSession } from "../../session/session-context.tsx";
import { useModelToTry } from "./built-in-model.ts";
import { curlSnippet, javaScriptSnippet, pythonSnippet } from "./snippets.ts";

const languages = [
  { id: "curl", title: "curl", snippet: curlSnippet },
  { id: "javascript", title: "JavaScript", snippet: javaScriptSnippet },
  { id: "python", title: "Python", snippet: pythonSnippet },
];

/** The same call from a shell and from two languages, ready to paste. */
export function SnippetsCard() {
  const key = useSession().keys.inference?.secret;
  const model = useModelToTry("speech").data;
  const target = { baseUrl: apiUrl(), model: model?.id ?? "author/model", voice: model?.voice ?? "a-voice" };
  const tabs = languages.map(({ id, title, snippet }) => ({
    id,
    title,
    content: (
      <CodeBlock
        code={snippet({ ...target, key: key ?? "sk-..." })}
        shown={snippet({ ...target, key: key === undefined ? "sk-..." : maskedKey(key) })}
        what={`the call in ${title}`}
      />
    ),
  }));
  return (
    <section className="card" aria-labelledby="snippets">
      <div>
        <h2 id="snippets">Call it</h2>
        <p className="soft">
          {key === undefined
            ? "Put an inference key in its place."
            : "What you copy has your inference key in it; here it is masked."}{" "}
          Clients of OpenAI's kind and OpenRouter's SDKs work as they are.
        </p>
      </div>
      <TabGroup label="Languages" tabs={tabs} />
    </section>
  );
}
