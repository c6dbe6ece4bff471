import type { ReactNode } from "react";
import { Tab, TabList, TabPanel, Tabs } from "react-aria-components/Tabs";

interface TabGroupProps {
  readonly label: string;
  readonly tabs: readonly { readonly id: string; readonly title: string; readonly content: ReactNode }[];
}

/** Several things in one place, one at a time. */
export function TabGroup({ label, tabs }: TabGroupProps) {
  return (
    <Tabs className="tabs">
      <TabList aria-label={label}>
        {tabs.map(({ id, title }) => (
          <Tab key={id} id={id}>
            {title}
          </Tab>
        ))}
      </TabList>
      {tabs.map(({ id, content }) => (
        <TabPanel key={id} id={id}>
          {content}
        </TabPanel>
      ))}
    </Tabs>
  );
}
