import type { AttemptTimer } from './attempt-timer.ts'
import type { ParameterFault, Problem } from './errors.ts'
import { isObject } from './shape.ts'

/**
 * The bytes of a response as they arrive. The timeout runs only while a caller waits for bytes. It keeps the response until the first read:
 * Node.js ends the body of a response that was garbage collected, as if it were empty, unless a reader has locked it.
 */
export async function* chunksOf(
  response: Response,
  timer: AttemptTimer,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  const reader = response.body?.getReader()
  if (reader === undefined) return
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
    for await (const chunk of chunksOf(response, timer)) {
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
  const chunks = chunksOf(response, timer)
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

const isText = (value: unknown): boolean => typeof value === 'string'
const isNumber = (value: unknown): boolean => typeof value === 'number'
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText)

/** What the members are that a problem and its parameters can have. */
const memberTypes: readonly (readonly [is: (value: unknown) => boolean, ...names: readonly string[]])[] = [
  [isText, 'title', 'detail', 'instance', 'code', 'unit'],
  [isNumber, 'status', 'minimum', 'maximum', 'left', 'source_status'],
  [isTexts, 'accepted', 'members', 'missing', 'reasons'],
]

/** RFC 9457, section 3.1: a member of the wrong type is ignored, not fatal. Unknown members are kept. */
const withoutWrongTypes = (members: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(members).filter(([name, value]) =>
      memberTypes.every(([is, ...names]) => !names.includes(name) || is(value)),
    ),
  )

/** Creates a reader of responses whose content is in the headers. */
export const headersReader =
  <T>(read: (response: Response) => T) =>
  async (response: Response, timer: AttemptTimer): Promise<T> => {
    timer.close()
    return read(response)
  }

/** Reads a response whose status says everything. */
export const readNothing = headersReader(() => {})

/** The problem in the body of a response; null for any other body. */
export function readProblem(contentType: string | null, body: string): Problem | null {
  if (!/^application\/problem\+json\b/i.test(contentType ?? '')) return null
  const value = jsonOf(body)
  if (!isObject(value)) return null
  const { type, errors, ...others } = value
  return {
    ...withoutWrongTypes(others),
    type: typeof type === 'string' && type !== '' ? type : 'about:blank',
    ...(Array.isArray(errors)
      ? { errors: errors.filter(isObject).map(withoutWrongTypes).filter(isParameterFault) }
      : {}),
  }
}

const isParameterFault = (
  members: Record<string, unknown>,
): members is Record<string, unknown> & ParameterFault =>
  typeof members['parameter'] === 'string' && typeof members['detail'] === 'string'

/** The value of a JSON text; undefined for any other text. */
export function jsonOf(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

/** The first line of a body that is not a problem, for messages: of text and JSON; empty for HTML and others. */
export function excerpt(contentType: string | null, body: string): string {
  if (!/^(?:text\/plain|application\/(?:[\w.-]+\+)?json)\b/i.test(contentType ?? '')) return ''
  const line = body.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()
  return line.length > 200 ? `${line.slice(0, 200)}…` : line
}
