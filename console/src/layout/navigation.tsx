import { navGroups, pages } from "../pages.ts";
import { useHashRoute } from "../route/hash-route.ts";

/** The pages in their groups. */
export function Navigation({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { page: current } = useHashRoute();
  return (
    <nav id="navigation" aria-label="Pages" className={isOpen ? "navigation open" : "navigation"}>
      {navGroups.map((group) => {
        const listed = pages.filter((page) => page.group === group);
        if (listed.length === 0) return null;
        return (
          <div key={group}>
            <h2 id={`nav-${group}`}>{group}</h2>
            <ul aria-labelledby={`nav-${group}`}>
              {listed.map(({ path, title }) => (
                <li key={path}>
                  <a
                    href={`#/${path}`}
                    aria-current={path === current ? "page" : undefined}
                    onClick={onClose}
                  >
                    {title}
                  </a>
                </li>
              ))}
            </ul>
          </div>
        );
      })}
      <p className="nav-foot">
        <a href="docs">The interface</a>
      </p>
    </nav>
  );
}
