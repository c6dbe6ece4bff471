import { CodeBlock } from "../../kit/code-block.tsx";

/** How credit comes to an account. */
export function GrantCard() {
  return (
    <section className="card" aria-labelledby="grant">
      <div>
        <h2 id="grant">Grant credit</h2>
        <p className="soft">
          Each request is paid from the account's credit. Whoever operates the gateway grants it, where it
          runs; here, 10 US dollars:
        </p>
      </div>
      <CodeBlock code="npm run admin -- credit grant 10" what="the line that grants 10 US dollars" />
    </section>
  );
}
