import { ShapeError } from './errors/shape-error.ts'
import { readText } from './response-body.ts'
import type { Watch } from './watch.ts'

/** JSON first, because some services redirect other requests to a sign-in page. */
export const acceptJson = { accept: 'application/json, application/problem+json' }

/** Creates a reader of JSON responses. It rejects with a `ShapeError` for any other response. */
export const jsonReader =
  <T>(what: string, read: (value: unknown) => T) =>
  async (response: Response, watch: Watch): Promise<T> => {
    const text = await readText(response, watch)
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
