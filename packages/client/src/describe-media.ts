import type { Endpoints } from './endpoints.ts'
import { type Media, readMedia } from './media.ts'
import { acceptJson, jsonReader } from './read-json.ts'
import { type Sending, send } from './send.ts'

/** The media object of the item with this id. */
export const describeMedia = (
  sending: Sending,
  endpoints: Endpoints,
  id: string,
  signal: AbortSignal | undefined,
): Promise<Media> =>
  send(sending, {
    method: 'GET',
    url: endpoints.item(id),
    headers: acceptJson,
    repeatable: true,
    signal,
    read: jsonReader('a media object', readMedia),
  })
