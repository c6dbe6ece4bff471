import { EmptyState } from "../../kit/empty-state.tsx";
import { hrefOf } from "../../route/hash-route.ts";

/** What stands here while no provider of a medium is on. */
export function NoModels({ verb }: { verb: "speaks" | "draws" }) {
  return (
    <section className="card">
      <EmptyState title={`No model ${verb} here yet`}>
        <p>
          A provider must be switched on: the <a href={hrefOf([])}>Welcome page</a> says by which line.
        </p>
      </EmptyState>
    </section>
  );
}
