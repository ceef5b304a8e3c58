/**
 * The address of an upload below this page's own service. The service names uploads by its base URL, which may be
 * another address than the one that this page was reached by; of that URL only the upload's id counts.
 */
export function ownUploadUrl(url: string, uploads: string): string {
  const id = /\/api\/uploads\/([^/?#]+)/.exec(url)?.[1]
  return id === undefined ? uploads : `${uploads}/${id}`
}
