import type { ReactNode } from "react";

/** What stands where there is nothing yet: what would be here, and how it comes to be. */
export function EmptyState({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}
