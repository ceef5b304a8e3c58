import type { CallOptions } from './client-options.ts'
import type { Endpoints } from './endpoints.ts'
import { jsonBody } from './json-body.ts'
import { type Media, readMedia } from './media.ts'
import { acceptJson, jsonReader } from './read-json.ts'
import { type SendSettings, send } from './send.ts'

/** Changes of an item. Members that are left out stay as they are, null removes a text. */
export interface MediaChanges {
  readonly filename?: string | null | undefined
  readonly alt_text?: string | null | undefined
  readonly caption?: string | null | undefined
}

export interface UpdateOptions extends CallOptions {
  /** The `ETag` of the media object, from `describeTagged`: the item is changed only if it still has this one. */
  readonly ifMatch?: string | undefined
}

/** Changes an item. With `ifMatch` it is not retried, because the first attempt changes the ETag. */
export const updateMedia = (
  settings: SendSettings,
  endpoints: Endpoints,
  id: string,
  changes: MediaChanges,
  { ifMatch, signal }: UpdateOptions,
): Promise<Media> =>
  send(settings, {
    method: 'PATCH',
    url: endpoints.item(id),
    headers: {
      ...acceptJson,
      'content-type': 'application/merge-patch+json',
      ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
    },
    body: jsonBody(changes),
    repeatable: ifMatch === undefined,
    signal,
    read: jsonReader('a media object', readMedia),
  })
