/** A call of a stubbed fetch. */
interface Sent {
  readonly url: string
  readonly method: string
  readonly headers: Headers
  readonly init: RequestInit
}

export type Answer = (sent: Sent) => Response | Promise<Response>

/** A fetch that returns these responses in order, repeating the last, and records its calls. */
export function stubFetch(...answers: Answer[]) {
  const sent: Sent[] = []
  const fetch: typeof globalThis.fetch = async (input, init = {}) => {
    const call = {
      url: String(input),
      method: init.method ?? 'GET',
      headers: new Headers(init.headers),
      init,
    }
    const answer = answers[Math.min(sent.length, answers.length - 1)]
    sent.push(call)
    if (!answer) throw new Error('no answer is left')
    return await answer(call)
  }
  return { fetch, sent }
}

export const json = (value: unknown, init?: ResponseInit): Answer => {
  return () => Response.json(value, init)
}

export const status = (code: number, headers: Record<string, string> = {}, body = ''): Answer => {
  return () => new Response(body, { status: code, headers })
}

/** Rejects as the fetch of Node.js and of browsers does without a connection. */
export const cut: Answer = () => {
  throw new TypeError('fetch failed', { cause: new Error('ECONNRESET') })
}

/** Does not respond, and rejects when it is aborted, as fetch does. */
export const hang: Answer = ({ init }) =>
  new Promise((_, reject) => {
    init.signal?.addEventListener('abort', () => reject(init.signal?.reason))
  })
