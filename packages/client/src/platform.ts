/** The members of XMLHttpRequest that uploads use, declared here because the package is compiled without DOM types. */
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

/** XMLHttpRequest in browsers; undefined in service workers and elsewhere. */
export const xhrOfPlatform = (): (new () => UploadingXhr) | undefined =>
  (globalThis as Platform).XMLHttpRequest

/**
 * Whether fetch accepts a stream as a body. Node.js, Deno and Bun do. Some browsers send the text
 * "[object ReadableStream]" instead, and others require HTTP/2, so streams are not used in browsers.
 */
export const takesStreams = (): boolean =>
  xhrOfPlatform() === undefined && (globalThis as Platform).process?.versions?.node !== undefined
