/** Saves what an address of this page's own holds. */
export function DownloadLink({ url, name }: { url: string; name: string }) {
  return (
    <a className="button compact" href={url} download={name} aria-label={`Download ${name}`}>
      Download
    </a>
  );
}
