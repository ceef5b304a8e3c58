import { create } from 'content-disposition'
import { essenceOf, isInlineType, sentTextType } from '../core/stored-type.ts'
import type { Variant } from '../core/variants.ts'
import { bucketHeader, type Validators } from '../http/headers.ts'
import type { Item } from '../storage/catalog/records.ts'
import type { PrivateAccess } from './private-access.ts'

/** Forbids scripts and all external sources; allows inline styles, which SVG pictures need. */
const policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

const embeddingHeaders = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'cross-origin',
  // The URL of an item grants access to it, so links in a PDF must not send it as their referrer.
  'referrer-policy': 'no-referrer',
}
const sandboxHeaders = { ...embeddingHeaders, 'content-security-policy': policy }

/** The name of the size of a variant (docs/interface.md V18). */
const variantHeader = 'mediabucket-variant'

/** The headers that keep bytes of a type from acting in a page, as alternating names and values (docs/interface.md B5). */
export const inertHeaders = (contentType: string): readonly string[] =>
  Object.entries(deliveryOf(contentType).isSandboxed ? sandboxHeaders : embeddingHeaders).flat()

/** Headers of every problem of the route (docs/interface.md B5). */
export const problemHeaders: Readonly<Record<string, string>> = sandboxHeaders

/** The representation that is sent of an item: its bytes or a variant (RFC 9110, section 3.2). */
export interface Representation {
  readonly validators: Validators
  /** The headers of every success. */
  readonly common: string[]
  /** The first of them (docs/interface.md B5). */
  readonly security: readonly string[]
  /** The further headers of responses with bytes, except those of ranges and of the length. */
  readonly content: readonly string[]
  readonly contentType: string
  readonly contentDisposition: string
  readonly cacheControl: string
  /** Milliseconds for which others may send the bytes instead of the service; null for any time. */
  readonly validFor: number | null
}

/** `access` is null for public items. */
export type Describe = (
  item: Item,
  variant: Variant | null,
  isDownload: boolean,
  access: PrivateAccess | null,
) => Representation

/** A token can be revoked. Milliseconds. */
const tokenHandOver = 60_000

/** Describes the representations of items. `maxAge` is in milliseconds. */
export function describeRepresentation(parts: {
  readonly maxAge: number
  /** The values of `Vary`; the first may be empty. */
  readonly vary: { readonly inline: string; readonly attachment: string; readonly variant: string }
}): Describe {
  const { vary } = parts
  const maxAge = Math.floor(parts.maxAge / 1000)
  const inlineVary = vary.inline === '' ? [] : ['vary', vary.inline]

  /** How long a response may be used after its request (docs/interface.md H4). */
  function cachingOf({ expiresAt }: Item, variant: Variant | null, access: PrivateAccess | null) {
    // The bytes of an item never change; a variant does with the focus and with its size (V4).
    const lasting = variant === null ? ', immutable' : ''
    const left = expiresAt == null ? null : Math.max(0, expiresAt - Date.now())
    if (access === null)
      return left === null
        ? { cacheControl: `public, max-age=${maxAge}${lasting}`, validFor: null }
        : // A cache asks each time, so that it does not keep an item that has expired (E2).
          { cacheControl: 'public, no-cache', validFor: left }
    if (access.by === 'token')
      return { cacheControl: 'private, no-cache', validFor: Math.min(tokenHandOver, left ?? tokenHandOver) }
    const seconds = Math.max(
      0,
      Math.min(
        access.expires - Math.ceil(Date.now() / 1000),
        left === null ? Number.POSITIVE_INFINITY : Math.floor(left / 1000),
      ),
    )
    return {
      cacheControl: `private, max-age=${Math.min(maxAge, seconds)}${lasting}`,
      validFor: seconds * 1000,
    }
  }

  function varyOf(variant: Variant | null, type: string, hasToken: boolean): readonly string[] {
    // A cache must not give a download to a page that loads it as code (B10). Browsers do not run inline types.
    const values = [
      ...(hasToken ? ['Authorization', bucketHeader] : []),
      ...(type === 'attachment' ? [vary.attachment] : []),
      ...(variant?.isNegotiated ? [vary.variant] : []),
    ]
    if (values.length === 0) return inlineVary
    return ['vary', (hasToken && vary.inline !== '' ? [vary.inline, ...values] : values).join(', ')]
  }

  return (item, variant, isDownload, access) => {
    const { sha256, filename: name } = item
    const key = Buffer.from(sha256).toString('base64url')
    const etag = variant === null ? `"${key}"` : `"${key}.${variant.key}"`
    // A variant changes with the focus and with its size, at a time that is not stored.
    const lastModified = variant === null ? item.createdAt : null
    const filename =
      variant === null ? name : name && `${name.replace(/(?<=.)\.[^.]*$/, '')}.${extensionOf(variant)}`
    const { contentType, disposition, isSandboxed } = deliveryOf(
      variant === null ? item.contentType : `image/${variant.format}`,
    )
    const type = isDownload ? 'attachment' : disposition
    const contentDisposition = create(filename ?? undefined, { type })
    const security = Object.entries(isSandboxed ? sandboxHeaders : embeddingHeaders).flat()
    const caching = cachingOf(item, variant, access)
    return {
      ...{ contentType, contentDisposition, ...caching, security },
      validators: { etag, lastModified },
      common: [
        ...security,
        ...varyOf(variant, type, access?.by === 'token'),
        ...['etag', etag],
        ...(lastModified === null ? [] : ['last-modified', new Date(lastModified).toUTCString()]),
        ...['cache-control', caching.cacheControl],
        ...(variant === null ? [] : [variantHeader, variant.name]),
      ],
      content: ['content-type', contentType, 'content-disposition', contentDisposition],
    }
  }
}

const extensionOf = ({ format }: Variant): string => (format === 'jpeg' ? 'jpg' : format)

/** How bytes of a stored type are sent. */
export interface Delivery {
  readonly contentType: string
  readonly disposition: 'inline' | 'attachment'
  /** Whether `Content-Security-Policy` has `sandbox`. */
  readonly isSandboxed: boolean
}

/** docs/interface.md B5, B6. PDF has no sandbox, which breaks its viewer. */
export function deliveryOf(contentType: string): Delivery {
  // Browsers read a type with a comma as several, of which the last one counts. Clients of S3 choose types freely.
  const type = contentType.includes(',') ? '' : essenceOf(contentType)
  return {
    contentType: type.startsWith('text/') ? sentTextType(contentType) : contentType,
    disposition: isInlineType(type) ? 'inline' : 'attachment',
    isSandboxed: type !== 'application/pdf',
  }
}
