import { RedirectError } from './errors/redirect-error.ts'
import type { UploadingXhr } from './platform.ts'
import type { Transport } from './transport.ts'

/**
 * Sends an upload with XMLHttpRequest, because browsers report upload progress only there. It follows redirects itself.
 * Browsers omit the token on a redirect to another origin (Fetch, HTTP-redirect fetch), and the response is refused.
 */
export function xhrTransport(Xhr: new () => UploadingXhr): Transport {
  return ({ method, url, headers, body }, timer) => {
    const xhr = new Xhr()
    timer.signal.addEventListener('abort', () => xhr.abort(), { once: true })
    return timer.during(
      () =>
        new Promise((resolve, reject) => {
          const blob = body?.content.blob?.() ?? new Blob([])
          xhr.upload.onprogress = ({ loaded }) => {
            timer.restart()
            try {
              body?.onProgress?.({ sent: loaded, total: blob.size })
            } catch (error) {
              timer.abort(error)
            }
          }
          xhr.onerror = () => reject(new Error('XMLHttpRequest failed'))
          xhr.onload = () => {
            if (new URL(xhr.responseURL || url).origin === new URL(url).origin)
              return resolve(responseOf(xhr))
            timer.abort(
              new RedirectError(url, xhr.responseURL, 'The upload was redirected to another origin'),
            )
          }
          xhr.open(method, url)
          for (const [name, value] of headers) xhr.setRequestHeader(name, value)
          xhr.send(blob)
        }),
    )
  }
}

function responseOf(xhr: UploadingXhr): Response {
  const headers = new Headers()
  for (const line of xhr.getAllResponseHeaders().split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) headers.append(line.slice(0, colon), line.slice(colon + 1).trim())
  }
  const hasBody = ![204, 205, 304].includes(xhr.status)
  return new Response(hasBody ? xhr.responseText : null, { status: xhr.status, headers })
}
