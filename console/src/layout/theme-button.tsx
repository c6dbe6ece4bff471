import { useState } from "react";
import { ActionButton } from "../kit/action-button.tsx";
import { applyTheme, storedTheme, type Theme, themes } from "./theme.ts";

const icons: Readonly<Record<Theme, string>> = {
  system: "M3 4h14v9H3zM7 17h6M10 13v4",
  light:
    "M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM10 1v2M10 17v2M1 10h2M17 10h2M3.6 3.6 5 5M15 15l1.4 1.4M3.6 16.4 5 15M15 5l1.4-1.4",
  dark: "M16.5 12.5A7 7 0 0 1 7.5 3.5a7 7 0 1 0 9 9z",
};

/** Goes through the themes. */
export function ThemeButton() {
  const [theme, setTheme] = useState(storedTheme);
  const next = themes[(themes.indexOf(theme) + 1) % themes.length] ?? "system";
  return (
    <ActionButton
      look="quiet"
      aria-label={`Theme: ${theme}. Change to ${next}`}
      onPress={() => {
        applyTheme(next);
        setTheme(next);
      }}
    >
      <svg
        viewBox="0 0 20 20"
        fill="none"
        stroke="currentColor"
        strokeWidth="1.6"
        strokeLinecap="round"
        strokeLinejoin="round"
        aria-hidden="true"
      >
        <path d={icons[theme]} />
      </svg>
    </ActionButton>
  );
}
