import { DefaultHttpStack, type DetailedError, type HttpRequest, type HttpStack, Upload } from 'tus-js-client'
import type { TokenSource } from '../../session/stored-session.ts'
import { Refusal } from './refusal.ts'

/** The server did not respond, or only a proxy in front of it did. */
export class NoResponse extends Error {}

export interface ResumableRequest {
  readonly file: File
  readonly name: string
  readonly contentType: string
  /** The URL that creates uploads, on the page's own origin. */
  readonly endpoint: string
  readonly token: TokenSource
  /** The upload to continue; null for a new one. */
  readonly uploadUrl: string | null
  readonly onUrl: (url: string) => void
  readonly onProgress: (sent: number) => void
}

export interface ResumableUpload {
  /** Resolves with the id of the item; rejects with a `Refusal` or with `NoResponse`. Does not settle after `stop`. */
  readonly finished: Promise<string>
  /** Stops sending. The server keeps the bytes that it has received. */
  stop(): void
}

/** Without progress for this long the connection counts as lost. Milliseconds. */
const idleTimeout = 60_000

/** Sends one file by tus, from the offset that the server has. Does not retry. */
export function sendResumable(request: ResumableRequest): ResumableUpload {
  const { file, endpoint, uploadUrl, onUrl, onProgress } = request
  let timer: ReturnType<typeof setTimeout> | undefined
  let upload: Upload
  const finished = new Promise<string>((resolve, reject) => {
    const restartIdleTimer = () => {
      clearTimeout(timer)
      timer = setTimeout(() => {
        void upload.abort()
        reject(new NoResponse())
      }, idleTimeout)
    }
    const stopIdleTimer = () => clearTimeout(timer)
    upload = new Upload(file, {
      ...optionsOf(request),
      uploadUrl,
      metadata: { filename: request.name, filetype: request.contentType },
      onUploadUrlAvailable() {
        if (upload.url) onUrl(ownUploadUrl(upload.url, endpoint))
      },
      onProgress(sent) {
        restartIdleTimer()
        onProgress(sent)
      },
      onSuccess({ lastResponse }) {
        stopIdleTimer()
        resolve(/\/media\/([^/?#]+)$/.exec(lastResponse.getHeader('Content-Location') ?? '')?.[1] ?? '')
      },
      onError(error) {
        stopIdleTimer()
        reject(reasonOf(error))
      },
    })
    restartIdleTimer()
    upload.start()
  })
  return {
    finished,
    stop() {
      clearTimeout(timer)
      void upload.abort()
    },
  }
}

/** Ends an upload that will not continue, so that the server frees the reserved space. */
export const terminate = (
  url: string,
  to: { readonly endpoint: string; readonly token: TokenSource },
): void =>
  void Upload.terminate(url, { ...optionsOf(to), retryDelays: [...terminateRetryDelays] }).catch(
    () => undefined,
  )

/** An aborted request locks the upload until the server notices (423), so the request is repeated. Milliseconds. */
const terminateRetryDelays = [250, 1000, 3000]

const optionsOf = ({ endpoint, token }: { readonly endpoint: string; readonly token: TokenSource }) => ({
  endpoint,
  async onBeforeRequest(request: HttpRequest) {
    request.setHeader('Authorization', `Bearer ${await token()}`)
  },
  httpStack: ownOriginStack(endpoint),
  storeFingerprintForResuming: false,
  retryDelays: null,
})

/** Sends every request to the page's own origin, whatever host the server's responses name. */
function ownOriginStack(endpoint: string): HttpStack {
  const stack = new DefaultHttpStack({})
  return {
    createRequest: (method, url) => stack.createRequest(method, ownUploadUrl(url, endpoint)),
    getName: () => stack.getName(),
  }
}

function reasonOf(error: Error | DetailedError): Error {
  const response = 'originalResponse' in error ? error.originalResponse : null
  if (!response || response.getStatus() === 0) return new NoResponse()
  const seconds = Number(response.getHeader('Retry-After') ?? Number.NaN)
  return new Refusal(response.getStatus(), response.getBody(), Number.isNaN(seconds) ? null : seconds * 1000)
}

/**
 * The URL of an upload on the page's own origin. The server names uploads by its base URL, which may differ from the URL of
 * the page; only the upload's id is used.
 */
export function ownUploadUrl(url: string, endpoint: string): string {
  const id = /\/api\/uploads\/([^/?#]+)/.exec(url)?.[1]
  return id === undefined ? endpoint : `${endpoint}/${id}`
}
