/** A call of a stubbed fetch. */
interface Sent {
  readonly url: string
  readonly method: string
  readonly headers: Headers
  readonly init: RequestInit
}

export type Responder = (sent: Sent) => Response | Promise<Response>

/** A fetch that returns these responses in order, repeating the last, and records its calls. */
export function stubFetch(...responders: Responder[]) {
  const sent: Sent[] = []
  const fetch: typeof globalThis.fetch = async (input, init = {}) => {
    const call = {
      url: String(input),
      method: init.method ?? 'GET',
      headers: new Headers(init.headers),
      init,
    }
    const respond = responders[Math.min(sent.length, responders.length - 1)]
    sent.push(call)
    if (!respond) throw new Error('the test has no response')
    return await respond(call)
  }
  return { fetch, sent }
}

export const json = (value: unknown, init?: ResponseInit): Responder => {
  return () => Response.json(value, init)
}

export const status = (code: number, headers: Record<string, string> = {}, body = ''): Responder => {
  return () => new Response(body, { status: code, headers })
}

/** Rejects as the fetch of Node.js and of browsers does without a connection. */
export const cut: Responder = () => {
  throw new TypeError('fetch failed', { cause: new Error('ECONNRESET') })
}

/** Does not respond, and rejects when it is aborted, as fetch does. */
export const hang: Responder = ({ init }) =>
  new Promise((_, reject) => {
    init.signal?.addEventListener('abort', () => reject(init.signal?.reason))
  })
