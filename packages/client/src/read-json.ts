import { readText } from './answer-body.ts'
import { ShapeError } from './errors/shape-error.ts'
import type { Watch } from './watch.ts'

/** JSON first, which keeps some services from redirecting to a page for signing in. */
export const acceptJson = { accept: 'application/json, application/problem+json' }

/** A reader of answers in JSON; it rejects with a `ShapeError` where the answer is something else. */
export const jsonReader =
  <T>(what: string, read: (value: unknown) => T) =>
  async (answer: Response, watch: Watch): Promise<T> => {
    const text = await readText(answer, watch)
    return read(parseJson(what, text, answer.headers.get('content-type')))
  }

function parseJson(what: string, text: string, contentType: string | null): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new ShapeError(
      what,
      '',
      `must be JSON, and is ${text === '' ? 'empty' : (contentType ?? 'something else')}`,
    )
  }
}
