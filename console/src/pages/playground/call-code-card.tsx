import { useState } from "react";
import { Checkbox } from "react-aria-components/Checkbox";
import { apiUrl } from "../../api/api.ts";
import { CodeBlock } from "../../kit/code-block.tsx";
import { TabGroup } from "../../kit/tab-group.tsx";
import { maskedKey } from "../../session/session.ts";
import { useSession } from "../../session/session-context.tsx";
import type { CallCode, CallTarget } from "./call-code.ts";

const languages = [
  ["curl", "curl"],
  ["javaScript", "JavaScript"],
  ["python", "Python"],
] as const;

/** The call as it stands in the form, as code; with the key in it only for whoever asks. */
export function CallCodeCard({ id, codeOf }: { id: string; codeOf: (target: CallTarget) => CallCode }) {
  const secret = useSession().keys.inference?.secret;
  const [hasKey, setHasKey] = useState(false);
  const key = hasKey ? secret : undefined;
  const baseUrl = apiUrl();
  const code = codeOf({ baseUrl, key });
  const shown = codeOf({ baseUrl, key: key === undefined ? undefined : maskedKey(key) });
  return (
    <section className="card" aria-labelledby={id}>
      <div className="card-head">
        <h2 id={id}>This call as code</h2>
        <Checkbox className="check" isSelected={hasKey} onChange={setHasKey}>
          <span className="check-box" aria-hidden="true">
            {hasKey ? "✓" : ""}
          </span>
          With my key in it
        </Checkbox>
      </div>
      <TabGroup
        label="Languages"
        tabs={languages.map(([language, title]) => ({
          id: language,
          title,
          content: <CodeBlock code={code[language]} shown={shown[language]} what={`the call in ${title}`} />,
        }))}
      />
      <p className="soft small">
        {hasKey
          ? "What you copy has your inference key in it; here it is masked."
          : "The key comes from the environment variable MEDIA_KEY."}
      </p>
    </section>
  );
}
