import type { Watch } from './watch.ts'

/** The bytes of an answer as they come in. The other side's silence counts only while somebody waits for bytes. */
async function* chunksOf(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  watch: Watch,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await watch.during(() => reader.read())
      if (done) return
      yield value
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

/** The body as text, cut after `limit` bytes or the chunk that passes it; ends the try. */
export async function readText(
  answer: Response,
  watch: Watch,
  limit = Number.POSITIVE_INFINITY,
): Promise<string> {
  try {
    if (!answer.body) return ''
    const decoder = new TextDecoder()
    let text = ''
    let size = 0
    for await (const chunk of chunksOf(answer.body, watch)) {
      const rest = chunk.subarray(0, limit - size)
      text += decoder.decode(rest, { stream: true })
      size += rest.length
      if (size >= limit) return text
    }
    return text + decoder.decode()
  } finally {
    watch.close()
  }
}

/** The same answer with a body that fails when the other side is silent for too long; its end ends the try. */
export function watchedAnswer(answer: Response, watch: Watch): Response {
  const { body, url, redirected } = answer
  if (!body) {
    watch.close()
    return answer
  }
  const chunks = chunksOf(body, watch)
  const watched = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        try {
          const { done, value } = await chunks.next()
          if (!done) return controller.enqueue(value)
          controller.close()
        } catch (error) {
          controller.error(error)
        }
        watch.close()
      },
      async cancel() {
        watch.close()
        await chunks.return()
      },
    },
    { highWaterMark: 0 },
  )
  const { status, statusText, headers } = answer
  const same = new Response(watched, { status, statusText, headers })
  return Object.defineProperties(same, { url: { value: url }, redirected: { value: redirected } })
}
