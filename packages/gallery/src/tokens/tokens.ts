import type { Client, CreatedToken, ManagedToken, NewTokenLimits } from '@mediabucket/client'
import { type ReadonlySignal, signal } from '@preact/signals'
import type { Connection } from '../service/connection.ts'
import { errorMessage } from '../service/connection.ts'

/** The properties of a new token. */
export interface NewProperties {
  readonly name: string
  readonly scopes: readonly string[]
  readonly expiresAt: Date | null
  readonly note?: string
  readonly limits?: NewTokenLimits
  /** Whether it has keys for the S3 protocol. */
  readonly s3?: boolean
}

/** The tokens of the bucket. */
export interface Tokens {
  /** Those that are loaded, oldest first; null before the first are loaded. */
  readonly items: ReadonlySignal<readonly ManagedToken[] | null>
  readonly hasMore: ReadonlySignal<boolean>
  /** Why they could not be loaded; null if they are loaded or loading. */
  readonly error: ReadonlySignal<string | null>
  /** Loads the first tokens again. */
  reload(): Promise<void>
  loadMore(): Promise<void>
  /** Each resolves when the change is shown, the first two to the new token, which nothing shows again. */
  create(token: NewProperties): Promise<CreatedToken>
  rotate(id: string, overlapSeconds: number, expiresAt: Date | null): Promise<CreatedToken>
  revoke(id: string): Promise<void>
}

export const createToken = (
  tokens: Client['tokens'],
  connection: Connection,
  { expiresAt, ...properties }: NewProperties,
): Promise<CreatedToken> =>
  connection.watch(() => tokens.create({ ...properties, ...(expiresAt && { expiresAt }) }))

/** Tokens that are loaded together. */
const chunk = 100

export function createTokens({ tokens: client }: Client, connection: Connection): Tokens {
  const items = signal<readonly ManagedToken[] | null>(null)
  const hasMore = signal(false)
  const error = signal<string | null>(null)
  let stream = client.list()

  /** Reads up to `limit` tokens of the stream after `before`. */
  async function read(before: readonly ManagedToken[], limit: number): Promise<void> {
    const own = stream
    const loaded = [...before]
    try {
      let ended = false
      while (loaded.length < before.length + limit && !ended) {
        const next = await connection.watch(() => own.next())
        if (next.done) ended = true
        else loaded.push(next.value)
      }
      if (own !== stream) return
      items.value = loaded
      hasMore.value = !ended
    } catch (reason) {
      if (own === stream) error.value = errorMessage(reason)
    }
  }

  /** The earlier list stays until the new one is loaded, so that the focus stays too. */
  async function reload(): Promise<void> {
    stream = client.list()
    error.value = null
    await read([], Math.max(chunk, (items.peek()?.length ?? 0) + 1))
  }

  return {
    items,
    hasMore,
    error,
    reload,
    loadMore: () => read(items.value ?? [], chunk),
    async create(token) {
      const created = await createToken(client, connection, token)
      await reload()
      return created
    },
    async rotate(id, overlapSeconds, expiresAt) {
      const created = await connection.watch(() => client.rotate(id, { overlapSeconds, expiresAt }))
      await reload()
      return created
    },
    async revoke(id) {
      await connection.watch(() => client.revoke(id))
      await reload()
    },
  }
}

/**
 * The file `.sxcu` with which ShareX (13.7.2 or later) uploads pictures, texts and files to the service at this URL. With braces, ShareX reads
 * members of the response.
 */
export const shareXConfiguration = (service: URL, token: string): string =>
  JSON.stringify(
    {
      Version: '17.0.0',
      Name: `Mediabucket (${service.host})`,
      DestinationType: 'ImageUploader, TextUploader, FileUploader',
      RequestMethod: 'POST',
      RequestURL: new URL('api/media', service).href,
      Headers: { Authorization: `Bearer ${token}` },
      Body: 'MultipartFormData',
      FileFormName: 'file',
      URL: '{json:url}',
      ThumbnailURL: '{json:variants.thumb}',
      ErrorMessage: '{json:detail}',
    },
    null,
    2,
  )
