import "./kit/base.css";
import "./kit/kit.css";
import "./layout/layout.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";
import { applyTheme, storedTheme } from "./layout/theme.ts";
import { takeLinkCode } from "./session/console-link.ts";
import { Session } from "./session/session.ts";

applyTheme(storedTheme());
const root = document.getElementById("root");
if (root === null) throw new Error("the page has no root");
createRoot(root).render(
  <StrictMode>
    <App session={new Session(sessionStorage)} linkCode={takeLinkCode()} />
  </StrictMode>,
);
