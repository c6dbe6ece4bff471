import type { ReactNode } from "react";

interface NoticeProps {
  readonly tone?: "good" | "warn" | "bad";
  readonly title?: string;
  readonly children?: ReactNode;
  readonly actions?: ReactNode;
}

/** Something to know, here and now; what is bad is read out at once. */
export function Notice({ tone, title, children, actions }: NoticeProps) {
  return (
    <div
      className={tone === undefined ? "notice" : `notice ${tone}`}
      role={tone === "bad" ? "alert" : "status"}
    >
      <div>
        {title !== undefined && <strong>{title}</strong>}
        {children}
      </div>
      {actions !== undefined && <div className="row">{actions}</div>}
    </div>
  );
}
