/** What a stubbed fetch was called with. */
interface Sent {
  readonly url: string
  readonly method: string
  readonly headers: Headers
  readonly init: RequestInit
}

export type Answer = (sent: Sent) => Response | Promise<Response>

/** A fetch that gives these answers one after another, the last one for ever, and keeps what it was called with. */
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

/** What fetch of Node.js and of browsers rejects with when there is no connection. */
export const cut: Answer = () => {
  throw new TypeError('fetch failed', { cause: new Error('ECONNRESET') })
}

/** Never answers, and rejects when it is aborted, as fetch does. */
export const hang: Answer = ({ init }) =>
  new Promise((_, reject) => {
    init.signal?.addEventListener('abort', () => reject(init.signal?.reason))
  })
