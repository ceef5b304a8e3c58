import { DefaultHttpStack, type DetailedError, type HttpStack, Upload } from 'tus-js-client'
import { ownUploadUrl } from '../own-origin.ts'
import { Refusal } from './refusal.ts'

/** The service did not respond, or only a proxy in front of it did. */
export class NoResponse extends Error {}

export interface ResumableRequest {
  readonly file: File
  readonly name: string
  readonly contentType: string
  /** Where uploads begin, on the page's own origin. */
  readonly endpoint: string
  readonly token: string
  /** The upload to continue; null for a new one. */
  readonly uploadUrl: string | null
  readonly onUrl: (url: string) => void
  readonly onProgress: (sent: number) => void
}

export interface ResumableUpload {
  /** Resolves with the id of the item; rejects with a `Refusal` or with `NoResponse`. Never settles once stopped. */
  readonly finished: Promise<string>
  /** Stops sending. The service keeps what it has. */
  stop(): void
}

/** Milliseconds without a byte in either direction, after which the connection counts as lost. */
const silence = 60_000

/** Sends one file by tus, from where the service has it. Retries are up to the caller. */
export function sendResumable(request: ResumableRequest): ResumableUpload {
  const { file, endpoint, uploadUrl, onUrl, onProgress } = request
  let timer: ReturnType<typeof setTimeout> | undefined
  let upload: Upload
  const finished = new Promise<string>((resolve, reject) => {
    const heard = () => {
      clearTimeout(timer)
      timer = setTimeout(() => {
        void upload.abort()
        reject(new NoResponse())
      }, silence)
    }
    const settled = () => clearTimeout(timer)
    upload = new Upload(file, {
      ...optionsOf(request),
      uploadUrl,
      metadata: { filename: request.name, filetype: request.contentType },
      onUploadUrlAvailable() {
        if (upload.url) onUrl(ownUploadUrl(upload.url, endpoint))
      },
      onProgress(sent) {
        heard()
        onProgress(sent)
      },
      onSuccess({ lastResponse }) {
        settled()
        resolve(/\/media\/([^/?#]+)$/.exec(lastResponse.getHeader('Content-Location') ?? '')?.[1] ?? '')
      },
      onError(error) {
        settled()
        reject(reasonOf(error))
      },
    })
    heard()
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

/** Ends an upload that will not continue, so that the service frees what it reserved. */
export const terminate = (url: string, to: { readonly endpoint: string; readonly token: string }): void =>
  void Upload.terminate(url, { ...optionsOf(to), retryDelays: [...endDelays] }).catch(() => undefined)

/** A request that was cut off a moment ago locks the upload until the service notices (423). Milliseconds. */
const endDelays = [250, 1000, 3000]

const optionsOf = ({ endpoint, token }: { readonly endpoint: string; readonly token: string }) => ({
  endpoint,
  headers: { Authorization: `Bearer ${token}` },
  httpStack: ownOriginStack(endpoint),
  storeFingerprintForResuming: false,
  retryDelays: null,
})

/** Sends every request to the page's own origin, whichever the service's responses name. */
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
