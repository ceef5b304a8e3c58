import type { CallOptions } from './client-options.ts'
import type { Endpoints } from './endpoints.ts'
import { jsonBody } from './json-body.ts'
import { mediaIdOf } from './media-reference.ts'
import { acceptJson, jsonReader } from './read-json.ts'
import { type SendSettings, send } from './send.ts'
import { arrayOf, type Check, objectOf, parse, text } from './shape.ts'

/** The result of a deletion of many items: ids and URLs as they were given. */
export interface DeletedItems {
  readonly deleted: readonly string[]
  /** The bucket has no such items. */
  readonly missing: readonly string[]
}

/** The most ids that the service accepts in one request. */
const maxIds = 500

const shape: Check<DeletedItems> = objectOf<DeletedItems>({ deleted: arrayOf(text), missing: arrayOf(text) })

/** Deletes items with one request for each 500. Throws a `TypeError` for anything else than ids and URLs of items. */
export async function deleteMany(
  settings: SendSettings,
  endpoints: Endpoints,
  references: readonly (string | URL)[],
  { signal }: CallOptions,
): Promise<DeletedItems> {
  const idsByReference = new Map(references.map((reference) => [String(reference), mediaIdOf(reference)]))
  const ids = [...new Set(idsByReference.values())]
  const missing = new Set<string>()
  for (let start = 0; start < ids.length; start += maxIds) {
    const read = jsonReader('deleted items', (value) => parse('deleted items', shape, value))
    const { result, attempt } = await send(settings, {
      method: 'DELETE',
      url: endpoints.uploads,
      headers: { ...acceptJson, 'content-type': 'application/json' },
      body: jsonBody({ ids: ids.slice(start, start + maxIds) }),
      repeatable: true,
      signal,
      read: async (response, timer, attempt) => ({ result: await read(response, timer), attempt }),
    })
    // An earlier attempt may have deleted what a later one reports as missing.
    if (attempt === 1) for (const id of result.missing) missing.add(id)
  }
  const given = [...idsByReference]
  return {
    deleted: given.filter(([, id]) => !missing.has(id)).map(([reference]) => reference),
    missing: given.filter(([, id]) => missing.has(id)).map(([reference]) => reference),
  }
}
