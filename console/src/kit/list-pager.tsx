import { ActionButton } from "./action-button.tsx";

interface ListPagerProps {
  /** How many come before the page that is shown. */
  readonly offset: number;
  /** How many are shown. */
  readonly count: number;
  /** How many there are on all pages. */
  readonly total: number;
  /** The most that a page shows. */
  readonly size: number;
  readonly onGo: (offset: number) => void;
}

/** Where in a list of several pages the reader is, and ways on; nothing where there is one page. */
export function ListPager({ offset, count, total, size, onGo }: ListPagerProps) {
  if (offset === 0 && count >= total) return null;
  return (
    <nav className="row" aria-label="Pages of the list">
      <span className="soft small number" role="status">
        {count === 0 ? `none of ${total}` : `${offset + 1}–${offset + count} of ${total}`}
      </span>
      <ActionButton compact isDisabled={offset === 0} onPress={() => onGo(Math.max(0, offset - size))}>
        Previous
      </ActionButton>
      <ActionButton compact isDisabled={offset + count >= total} onPress={() => onGo(offset + size)}>
        Next
      </ActionButton>
    </nav>
  );
}
