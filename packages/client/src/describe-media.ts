import type { Endpoints } from './endpoints.ts'
import { type Media, readMedia } from './media.ts'
import { acceptJson, jsonReader } from './read-json.ts'
import { type SendSettings, send } from './send.ts'

/** Fetches the media object of an item. */
export const describeMedia = (
  settings: SendSettings,
  endpoints: Endpoints,
  id: string,
  signal: AbortSignal | undefined,
): Promise<Media> =>
  send(settings, {
    method: 'GET',
    url: endpoints.item(id),
    headers: acceptJson,
    repeatable: true,
    signal,
    read: jsonReader('a media object', readMedia),
  })
