/** What of the settings shapes a URL; `baseUrl` has no slash at its end. */
export interface UrlForm {
  readonly baseUrl: string
  readonly extensions: boolean
}

/** The absolute URL of an item's bytes; `extension` is without its dot (docs/interface.md L14). */
export function mediaUrl(form: UrlForm, id: string, extension: string | null): string {
  const suffix = form.extensions && extension !== null ? `.${extension}` : ''
  return `${form.baseUrl}/media/${id}${suffix}`
}
