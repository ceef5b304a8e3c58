import type { CallOptions } from './client-options.ts'
import { acceptJson, sendJson } from './json.ts'
import { readNothing } from './responses.ts'
import { type SendSettings, send } from './send.ts'
import { arrayOf, type Check, objectOf, parse, text } from './shape.ts'
import type { Endpoints } from './urls.ts'

/** A key that signs URLs, as on the wire; never its secret. */
export interface SigningKey {
  readonly id: string
  /** `signs` for the newest key, `verifies` for the others. */
  readonly state: string
  /** RFC 3339, UTC. */
  readonly created_at: string
}

/** Manages the keys that sign the URLs of all buckets. The token of the service needs the scope `buckets:manage`. */
export interface KeyManager {
  /** The keys in the order of their creation. */
  list(options?: CallOptions): Promise<readonly SigningKey[]>

  /** Creates a key, which signs from then on. URLs of earlier keys stay valid. It is not retried, because a retry could create a second one. */
  rotate(options?: CallOptions): Promise<SigningKey>

  /** Removes a key; the URLs that it has signed are invalid from then on. Rejects with an `AnswerError` of status 404 if there is no such key. */
  remove(id: string, options?: CallOptions): Promise<void>
}

const keyShape: Check<SigningKey> = objectOf<SigningKey>({ id: text, state: text, created_at: text })
const listShape = objectOf<{ readonly data: readonly SigningKey[] }>({ data: arrayOf(keyShape) })

export function createKeyManager(settings: SendSettings, { keys }: Endpoints): KeyManager {
  return Object.freeze({
    async list({ signal }: CallOptions = {}) {
      const read = (value: unknown) => parse('a list of keys', listShape, value)
      return (await sendJson(settings, { url: keys, signal, what: 'a list of keys', read })).data
    },

    async rotate({ signal }: CallOptions = {}) {
      const read = (value: unknown) => parse('a key', keyShape, value)
      return await sendJson(settings, { method: 'POST', url: keys, signal, what: 'a key', read })
    },

    async remove(id: string, { signal }: CallOptions = {}) {
      const url = `${keys}/${encodeURIComponent(id)}`
      await send(settings, {
        method: 'DELETE',
        url,
        headers: acceptJson,
        repeatable: true,
        signal,
        read: readNothing,
      })
    },
  })
}
