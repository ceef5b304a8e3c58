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

/** The ids of a request that were found, and the others. */
export interface RequestResult {
  readonly done: readonly string[]
  readonly missing: readonly string[]
}

/** The most ids that the service accepts in one request. */
const maxIds = 500

const shape: Check<DeletedItems> = objectOf<DeletedItems>({ deleted: arrayOf(text), missing: arrayOf(text) })

function readDeleted(value: unknown): RequestResult {
  const { deleted, missing } = parse('deleted items', shape, value)
  return { done: deleted, missing }
}

/** Deletes items with one request for each 500. Throws a `TypeError` for anything else than ids and URLs of items. */
export async function deleteMany(
  settings: SendSettings,
  endpoints: Endpoints,
  references: readonly (string | URL)[],
  options: CallOptions,
): Promise<DeletedItems> {
  const target = { method: 'DELETE', url: endpoints.uploads } as const
  const { done, missing } = await requestByIds(settings, target, references, options)
  return { deleted: done, missing }
}

/** Sends the ids of these items, 500 in one request. Returns ids and URLs as they were given. */
export async function requestByIds(
  settings: SendSettings,
  target: {
    readonly method: 'DELETE' | 'POST'
    readonly url: string
    readonly read?: (value: unknown) => RequestResult
  },
  references: readonly (string | URL)[],
  { signal }: CallOptions,
): Promise<RequestResult> {
  const { method, url, read = readDeleted } = target
  const idsByReference = new Map(references.map((reference) => [String(reference), mediaIdOf(reference)]))
  const ids = [...new Set(idsByReference.values())]
  const missing = new Set<string>()
  for (let start = 0; start < ids.length; start += maxIds) {
    const readJson = jsonReader('the result for items', read)
    let mayBeDone = false
    const result = await send(settings, {
      method,
      url,
      headers: { ...acceptJson, 'content-type': 'application/json' },
      body: jsonBody({ ids: ids.slice(start, start + maxIds) }),
      repeatable: true,
      signal,
      onUncertain: () => {
        mayBeDone = true
      },
      read: readJson,
    })
    // An earlier attempt may have done what a later one reports as missing.
    if (!mayBeDone) for (const id of result.missing) missing.add(id)
  }
  const given = [...idsByReference]
  return {
    done: given.filter(([, id]) => !missing.has(id)).map(([reference]) => reference),
    missing: given.filter(([, id]) => missing.has(id)).map(([reference]) => reference),
  }
}
