import type { CallOptions } from './client-options.ts'
import { acceptJson, followCursors, jsonBody } from './json.ts'
import { type DeletedItems, type Media, mediaShape, type RequestResult, requestByIds } from './media.ts'
import { readNothing } from './responses.ts'
import { type SendSettings, send } from './send.ts'
import { arrayOf, type Check, objectOf, parse, text } from './shape.ts'
import type { Endpoints } from './urls.ts'

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

const times = objectOf<Pick<TrashedMedia, 'deleted_at' | 'expires_at'>>({
  deleted_at: text,
  expires_at: text,
})
const trashedShape: Check<TrashedMedia> = (value) => mediaShape(value) ?? times(value)

/** Iterates over the items of the trash, last deleted first. */
export const iterateTrash = (
  settings: SendSettings,
  endpoints: Endpoints,
  { signal }: CallOptions,
): AsyncGenerator<TrashedMedia, void, undefined> =>
  followCursors(settings, { url: endpoints.trash, what: 'a list of the trash', item: trashedShape, signal })

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
  const target = { method: 'DELETE', url: endpoints.trash } as const
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
    url: endpoints.trash,
    headers: { ...acceptJson, 'content-type': 'application/json' },
    body: jsonBody({ all: true }),
    repeatable: true,
    signal,
    read: readNothing,
  })
