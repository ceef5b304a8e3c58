import type { CallOptions } from './client-options.ts'
import type { Endpoints } from './endpoints.ts'
import { type Media, readMedia } from './media.ts'
import { acceptJson, jsonReader } from './read-json.ts'
import { type SendSettings, send } from './send.ts'

export interface DescribeOptions extends CallOptions {
  /** Whether the URLs of a private bucket are signed. Signed ones need no token for 15 minutes or more. Default: as the bucket is set. */
  readonly urls?: 'plain' | 'signed' | undefined
}

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
  { signal, urls }: DescribeOptions,
): Promise<TaggedMedia> =>
  send(settings, {
    method: 'GET',
    url: endpoints.item(id) + (urls === undefined ? '' : `?urls=${urls}`),
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
