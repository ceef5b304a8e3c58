import type { AttemptTimer } from './attempt-timer.ts'

/** The bytes of a response as they arrive. The timeout runs only while a caller waits for bytes. */
async function* chunksOf(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  timer: AttemptTimer,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await timer.during(() => reader.read())
      if (done) return
      yield value
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

/** The body as text, at most `limit` bytes of it. Closes the timer. */
export async function readText(
  response: Response,
  timer: AttemptTimer,
  limit = Number.POSITIVE_INFINITY,
): Promise<string> {
  try {
    if (!response.body) return ''
    const decoder = new TextDecoder()
    let text = ''
    let size = 0
    for await (const chunk of chunksOf(response.body, timer)) {
      const rest = chunk.subarray(0, limit - size)
      text += decoder.decode(rest, { stream: true })
      size += rest.length
      if (size >= limit) return text
    }
    return text + decoder.decode()
  } finally {
    timer.close()
  }
}

/** The same response with a body that fails on a timeout. The end of the body closes the timer. */
export function withTimeout(response: Response, timer: AttemptTimer): Response {
  const { body, url, redirected } = response
  if (!body) {
    timer.close()
    return response
  }
  const chunks = chunksOf(body, timer)
  const timed = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        try {
          const { done, value } = await chunks.next()
          if (!done) return controller.enqueue(value)
          controller.close()
        } catch (error) {
          controller.error(error)
        }
        timer.close()
      },
      async cancel() {
        timer.close()
        await chunks.return()
      },
    },
    { highWaterMark: 0 },
  )
  const { status, statusText, headers } = response
  const same = new Response(timed, { status, statusText, headers })
  return Object.defineProperties(same, { url: { value: url }, redirected: { value: redirected } })
}
