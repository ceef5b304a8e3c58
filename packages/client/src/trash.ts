import type { CallOptions } from './client-options.ts'
import { type DeletedItems, type RequestResult, requestByIds } from './delete-many.ts'
import type { Endpoints } from './endpoints.ts'
import { jsonBody } from './json-body.ts'
import { type Media, mediaShape } from './media.ts'
import { acceptJson, jsonReader } from './read-json.ts'
import { type SendSettings, send } from './send.ts'
import { arrayOf, type Check, objectOf, parse, text, textOrNull } from './shape.ts'

/** An item in the trash. */
export interface TrashedMedia extends Media {
  /** RFC 3339, UTC. */
  readonly deleted_at: string
  /** From then on it cannot be restored. */
  readonly expires_at: string
}

/** The result of a restore: ids and URLs as they were given. */
export interface RestoredItems {
  readonly restored: readonly string[]
  /** The trash has no such items. */
  readonly missing: readonly string[]
}

interface TrashList {
  readonly data: readonly TrashedMedia[]
  readonly next_cursor: string | null
}

const times = objectOf<Pick<TrashedMedia, 'deleted_at' | 'expires_at'>>({
  deleted_at: text,
  expires_at: text,
})
const trashedShape: Check<TrashedMedia> = (value) => mediaShape(value) ?? times(value)
const listShape: Check<TrashList> = objectOf<TrashList>({
  data: arrayOf(trashedShape),
  next_cursor: textOrNull,
})

/** Iterates over the items of the trash, last deleted first. */
export async function* iterateTrash(
  settings: SendSettings,
  endpoints: Endpoints,
  signal: AbortSignal | undefined,
): AsyncGenerator<TrashedMedia, void, undefined> {
  for (let cursor: string | null = null; ; ) {
    const list: TrashList = await send(settings, {
      method: 'GET',
      url: endpoints.trash(cursor),
      headers: acceptJson,
      repeatable: true,
      signal,
      read: jsonReader('a list of the trash', (value) => parse('a list of the trash', listShape, value)),
    })
    yield* list.data
    if (list.next_cursor === null || list.next_cursor === cursor) return
    cursor = list.next_cursor
  }
}

const restoredShape: Check<RestoredItems> = objectOf<RestoredItems>({
  restored: arrayOf(text),
  missing: arrayOf(text),
})

const readRestored = (value: unknown): RequestResult => {
  const { restored, missing } = parse('restored items', restoredShape, value)
  return { done: restored, missing }
}

/** Restores items with one request for each 500. */
export async function restoreItems(
  settings: SendSettings,
  endpoints: Endpoints,
  references: readonly (string | URL)[],
  options: CallOptions,
): Promise<RestoredItems> {
  const target = { method: 'POST', url: endpoints.restore, read: readRestored } as const
  const { done, missing } = await requestByIds(settings, target, references, options)
  return { restored: done, missing }
}

/** Deletes items of the trash with one request for each 500. */
export async function deleteFromTrash(
  settings: SendSettings,
  endpoints: Endpoints,
  references: readonly (string | URL)[],
  options: CallOptions,
): Promise<DeletedItems> {
  const target = { method: 'DELETE', url: endpoints.trash(null) } as const
  const { done, missing } = await requestByIds(settings, target, references, options)
  return { deleted: done, missing }
}

export const emptyTrash = (
  settings: SendSettings,
  endpoints: Endpoints,
  { signal }: CallOptions,
): Promise<void> =>
  send(settings, {
    method: 'DELETE',
    url: endpoints.trash(null),
    headers: { ...acceptJson, 'content-type': 'application/json' },
    body: jsonBody({ all: true }),
    repeatable: true,
    signal,
    read: async (_response, timer) => timer.close(),
  })
