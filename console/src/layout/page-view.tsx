import { type ComponentType, type LazyExoticComponent, lazy, Suspense, useEffect, useRef } from "react";
import { EmptyState } from "../kit/empty-state.tsx";
import { PageHeader } from "../kit/page-header.tsx";
import { Skeleton } from "../kit/skeleton.tsx";
import { pages } from "../pages.ts";
import { useHashRoute } from "../route/hash-route.ts";
import { PageBoundary } from "./page-boundary.tsx";

const views: ReadonlyMap<string, LazyExoticComponent<ComponentType>> = new Map(
  pages.map(({ path, load }) => [path, lazy(async () => ({ default: await load() }))]),
);

/** The page that the address names. */
export function PageView() {
  const { page: path } = useHashRoute();
  const page = pages.find((each) => each.path === path);
  const View = views.get(path);
  useArrival(path, page?.title ?? "Not found");
  if (View === undefined) return <UnknownPage />;
  return (
    <PageBoundary key={path}>
      <Suspense fallback={<Skeleton lines={6} />}>
        <View />
      </Suspense>
    </PageBoundary>
  );
}

function UnknownPage() {
  return (
    <>
      <PageHeader title="Not found" />
      <EmptyState title="There is no such page">
        <a href="#/">Go to the first one</a>
      </EmptyState>
    </>
  );
}

/** Tells those who see no page change that it has: by the title, and by the focus, which goes to the new heading. */
function useArrival(path: string, title: string): void {
  const arrivedAt = useRef(path);
  useEffect(() => {
    document.title = `${title} · Media Gateway`;
    if (arrivedAt.current === path) return;
    arrivedAt.current = path;
    scrollTo(0, 0);
    document.getElementById("content")?.focus({ preventScroll: true });
  }, [path, title]);
}
