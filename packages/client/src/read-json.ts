import type { AttemptTimer } from './attempt-timer.ts'
import { ShapeError } from './errors/shape-error.ts'
import { readText } from './response-body.ts'

/** Accepts JSON only: a proxy with its own sign-in may redirect a request that accepts HTML to its sign-in page. */
export const acceptJson = { accept: 'application/json, application/problem+json' }

/**
 * Creates a function that reads JSON responses with `read`. `what` names the expected value in errors, such as `a page`.
 * The function rejects with a `ShapeError` for a body that is not JSON.
 */
export const jsonReader =
  <T>(what: string, read: (value: unknown) => T) =>
  async (response: Response, timer: AttemptTimer): Promise<T> => {
    const text = await readText(response, timer)
    return read(parseJson(what, text, response.headers.get('content-type')))
  }

function parseJson(what: string, text: string, contentType: string | null): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new ShapeError(
      what,
      '',
      `must be JSON, and is ${text === '' ? 'empty' : (contentType ?? 'of an unknown type')}`,
    )
  }
}
