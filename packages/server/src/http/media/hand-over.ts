import { essenceOf } from '../../core/media-type.ts'
import type { SendFile } from '../../core/send-file.ts'
import type { OpenVariant } from '../../media/pictures/open-variant.ts'

/** Milliseconds for which signed URLs are valid. Clients of a proxy may read slowly, and it fetches an object in several requests. */
const lifetime = { redirect: 3_600_000, proxy: 86_400_000 }
/** The service sends the bytes itself if they may be sent for a shorter time, because a signed URL of the store can be half as old. */
const leastLifetime = 10_000

/** The headers of a response that the service would send. */
interface OwnResponse {
  /** Except those of `content`. */
  readonly common: readonly string[]
  /** Those of `common` that a redirect has too. */
  readonly security: readonly string[]
  readonly contentType: string
  readonly contentDisposition: string
  readonly cacheControl: string
  /** Milliseconds for which others may send the bytes instead of the service; null for any time. */
  readonly validFor: number | null
}

/** A response without a body: a proxy or the store sends it. */
export interface HandedOver {
  readonly status: 200 | 302
  readonly head: string[]
  readonly sentBy: 'proxy' | 'store'
}

/**
 * Leaves the body, and the range, to a proxy or to the store (docs/interface.md B12). Closes the blob then. Null if the service sends the
 * bytes.
 */
export async function handOver(
  sendFile: SendFile,
  blob: Pick<OpenVariant, 'content' | 'close'>,
  describe: () => OwnResponse,
): Promise<HandedOver | null> {
  const { content } = blob
  if (content.type === 'bytes') return null
  const own = describe()
  const { contentType, contentDisposition, cacheControl } = own

  async function leave(status: 200 | 302, head: readonly string[]): Promise<HandedOver> {
    await blob.close()
    return { status, head: [...head, 'content-length', '0'], sentBy: status === 302 ? 'store' : 'proxy' }
  }

  const head = [...own.common, 'content-type', contentType, 'content-disposition', contentDisposition]
  if (content.type === 'file') {
    const { path } = content
    if (sendFile.header === 'x-sendfile') return leave(200, [...head, sendFile.header, path])
    if (sendFile.header !== 'x-accel-redirect') return null
    // The last two parts are `shard/id`.
    const location = [sendFile.prefix, ...path.split('/').slice(-2)].join('/')
    return leave(200, [...head, sendFile.header, location])
  }
  if (sendFile.header === 'x-accel-redirect') {
    const { pathname, search } = new URL(await content.signUrl(null, lifetime.proxy))
    return leave(200, [...head, sendFile.header, `${sendFile.prefix}${pathname}${search}`])
  }
  if (sendFile.header !== 'location' || !isNeverCode(contentType)) return null
  // An even number of seconds, because the store counts seconds and equal URLs are signed for half of the lifetime.
  const redirectLifetime = Math.floor(Math.min(lifetime.redirect, own.validFor ?? Infinity) / 2_000) * 2_000
  if (redirectLifetime < leastLifetime) return null
  const url = await content.signUrl({ contentType, contentDisposition, cacheControl }, redirectLifetime)
  return leave(302, [...own.security, 'cache-control', 'no-store', 'location', url])
}

/**
 * Types that browsers neither run nor display as a document with links, also without `nosniff` and a policy, which a store cannot send
 * (Fetch, "Should response to request be blocked due to its MIME type?").
 */
const isNeverCode = (contentType: string): boolean =>
  /^(audio|image|video)\/(?!svg)/.test(essenceOf(contentType))
