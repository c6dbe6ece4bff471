/** Light, dark, or as the system has it. */
export type Theme = "system" | "light" | "dark";

/** All of them, in the order in which the button goes through them. */
export const themes: readonly Theme[] = ["system", "light", "dark"];

const storageName = "media-gateway-theme";

/** What was chosen on an earlier visit. */
export function storedTheme(): Theme {
  const stored = localStorage.getItem(storageName);
  return themes.find((theme) => theme === stored) ?? "system";
}

/** Shows a theme, and keeps it for later visits. */
export function applyTheme(theme: Theme): void {
  if (theme === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = theme;
  localStorage.setItem(storageName, theme);
}
