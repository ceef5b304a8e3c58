/** The part of XMLHttpRequest that sends an upload; written out, so that the types of browsers are not needed. */
export interface UploadingXhr {
  readonly upload: { onprogress: ((event: { readonly loaded: number }) => void) | null }
  readonly status: number
  readonly responseText: string
  readonly responseURL: string
  onload: (() => void) | null
  onerror: (() => void) | null
  open(method: string, url: string): void
  setRequestHeader(name: string, value: string): void
  getAllResponseHeaders(): string
  send(body: Blob): void
  abort(): void
}

interface Platform {
  readonly XMLHttpRequest?: new () => UploadingXhr
  readonly process?: { readonly versions?: { readonly node?: string } }
}

/** XMLHttpRequest where there is one: in browsers, but not in their service workers. */
export const xhrOfPlatform = (): (new () => UploadingXhr) | undefined =>
  (globalThis as Platform).XMLHttpRequest

/**
 * Whether requests can have streams for bodies. Node.js, Deno and Bun take them. Of browsers some send the text
 * "[object ReadableStream]" instead, others need HTTP/2 for it; so none gets a stream.
 */
export const takesStreams = (): boolean =>
  xhrOfPlatform() === undefined && (globalThis as Platform).process?.versions?.node !== undefined
