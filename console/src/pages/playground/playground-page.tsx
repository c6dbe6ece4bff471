import "./playground.css";
import { Tab, TabList, TabPanel, Tabs } from "react-aria-components/Tabs";
import { PageHeader } from "../../kit/page-header.tsx";
import { go, hrefOf, useHashRoute } from "../../route/hash-route.ts";
import { KeyGate } from "../../session/key-gate.tsx";
import { ImagesPanel } from "./images-panel.tsx";
import { SpeechPanel } from "./speech-panel.tsx";

/** Where speech and images are tried with all that can be set. */
export function PlaygroundPage() {
  const { rest } = useHashRoute();
  const chosen = rest[0] === "images" ? "images" : "speech";
  return (
    <div className="page-playground">
      <PageHeader title="Playground">
        Every model with all that it can be asked for: heard and seen while it is made, with what it costs.
      </PageHeader>
      <KeyGate needs="inference">
        <Tabs
          className="tabs"
          selectedKey={chosen}
          onSelectionChange={(next) => go(hrefOf(["playground", String(next)]), { replace: true })}
        >
          <TabList aria-label="What to make">
            <Tab id="speech">Speech</Tab>
            <Tab id="images">Images</Tab>
          </TabList>
          {/* What is out of sight stays as it is: its words, its call under way, its images. */}
          <TabPanel id="speech" shouldForceMount>
            <SpeechPanel />
          </TabPanel>
          <TabPanel id="images" shouldForceMount>
            <ImagesPanel />
          </TabPanel>
        </Tabs>
      </KeyGate>
    </div>
  );
}
