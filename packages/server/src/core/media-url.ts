/** What of the settings shapes a URL; `baseUrl` has no slash at its end. */
export interface UrlSettings {
  readonly baseUrl: string
  readonly extensions: boolean
  /** What URLs of bytes begin with where that is not `baseUrl`; no slash at its end. */
  readonly mediaBaseUrl?: string
}

/** The absolute URL of an item's bytes; `extension` is without its dot (docs/interface.md L14). */
export function mediaUrl(form: UrlSettings, id: string, extension: string | null): string {
  const suffix = form.extensions && extension !== null ? `.${extension}` : ''
  return `${form.mediaBaseUrl ?? form.baseUrl}/media/${id}${suffix}`
}
