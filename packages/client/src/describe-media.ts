import type { Endpoints } from './endpoints.ts'
import { type Media, readMedia } from './media.ts'
import { acceptJson, jsonReader } from './read-json.ts'
import { type SendSettings, send } from './send.ts'

/** A media object and its `ETag`, null if the service sends none. */
export interface TaggedMedia {
  readonly media: Media
  readonly etag: string | null
}

const read = jsonReader('a media object', readMedia)

/** Fetches the media object of an item, with its `ETag`. */
export const describeTagged = (
  settings: SendSettings,
  endpoints: Endpoints,
  id: string,
  signal: AbortSignal | undefined,
): Promise<TaggedMedia> =>
  send(settings, {
    method: 'GET',
    url: endpoints.item(id),
    headers: acceptJson,
    repeatable: true,
    signal,
    read: async (response, timer) => ({
      media: await read(response, timer),
      etag: response.headers.get('etag'),
    }),
  })

export const describeMedia = async (...call: Parameters<typeof describeTagged>): Promise<Media> =>
  (await describeTagged(...call)).media
