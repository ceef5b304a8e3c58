import { createHmac, timingSafeEqual } from 'node:crypto'
import type { VariantSize } from './variant-sizes.ts'
import type { PictureTool } from './variants.ts'

/** The settings that a URL depends on. `baseUrl` has no trailing slash. */
export interface UrlSettings {
  readonly baseUrl: string
  readonly extensions: boolean
  /** The start of the URLs of bytes, if it is not `baseUrl`. No trailing slash. */
  readonly mediaBaseUrl?: string
  /** Whether the URLs of media objects and links have the name of the item (docs/interface.md B13); left out for no. */
  readonly names?: boolean
  /** The sizes of variants; the built-in ones if absent. */
  readonly variants?: readonly VariantSize[]
  /** Of a private bucket: the names of the sizes that everybody may read; none if absent. */
  readonly publicVariants?: ReadonlySet<string>
  /** The programs that make pictures of further types; none if absent. */
  readonly tools?: ReadonlySet<PictureTool>
}

/** The absolute URL of an item's bytes; `extension` has no dot (docs/interface.md L14). */
export function mediaUrl(urls: UrlSettings, id: string, extension: string | null): string {
  const suffix = urls.extensions && extension !== null ? `.${extension}` : ''
  return `${urls.mediaBaseUrl ?? urls.baseUrl}/media/${id}${suffix}`
}

/** What a signature covers, besides the methods `GET` and `HEAD` (docs/interface.md H5). */
interface SignedTarget {
  /** The last segment of the path: an id, and a dot and an extension if the URL has one. */
  readonly name: string
  readonly variant: string | null
  readonly isDownload: boolean
  /** Seconds since 1970. */
  readonly expires: number
  readonly keyId: string
}

export interface SignedUrl extends SignedTarget {
  /** HMAC-SHA-256 in base64url, 43 characters. */
  readonly signature: string
}

/** A signed URL as a client sends it. The client may add how long it waits for a variant, which the signature does not cover. */
export interface SentSignedUrl extends SignedUrl {
  readonly wait: string | undefined
}

/** The parts of a key that sign. */
export interface SigningSecret {
  readonly id: string
  /** 32 bytes. */
  readonly secret: Uint8Array
}

/** Signs the URLs of items that expire at the same time. */
export interface LinkSigner {
  /** Identifies the key and the expiry: the URLs of two signers with the same tag are the same. */
  readonly tag: string
  /** Seconds since 1970. */
  readonly expires: number
  readonly sign: (
    item: { readonly id: string; readonly extension: string | null },
    options?: { readonly variant?: string | null; readonly isDownload?: boolean },
  ) => string
}

/** JSON of a list encodes different values differently. The first entry separates these signatures from all others with the key. */
const signedText = ({ name, variant, isDownload, expires, keyId }: SignedTarget): string =>
  JSON.stringify(['mediabucket signed URL 1', 'GET', `/media/${name}`, variant, isDownload, expires, keyId])

const signatureOf = (secret: Uint8Array, target: SignedTarget): string =>
  createHmac('sha256', secret).update(signedText(target)).digest('base64url')

/** The parameters are in alphabetical order, which proxies that sort them do not change. */
function pathOf({ name, variant, isDownload, expires, keyId, signature }: SignedUrl): string {
  const download = isDownload ? 'download=1&' : ''
  const suffix = variant === allVariants ? '&variants=all' : variant === null ? '' : `&variant=${variant}`
  return `/media/${name}?${download}expires=${expires}&key=${keyId}&signature=${signature}${suffix}`
}

/** In place of the name of a size: the bytes and all variants, one of which the client appends to the URL. */
export const allVariants = '*'

/** The signed URL of an item's bytes, of a variant, or of both (`allVariants`). */
export function signUrl(
  urls: UrlSettings,
  { id: keyId, secret }: SigningSecret,
  item: { readonly id: string; readonly extension: string | null },
  { expires, variant = null, isDownload = false }: SignedOptions,
): string {
  const plain = mediaUrl(urls, item.id, item.extension)
  const at = plain.lastIndexOf('/media/')
  const target = { name: plain.slice(at + '/media/'.length), variant, isDownload, expires, keyId }
  return plain.slice(0, at) + pathOf({ ...target, signature: signatureOf(secret, target) })
}

interface SignedOptions {
  readonly expires: number
  readonly variant?: string | null
  readonly isDownload?: boolean
}

const shape =
  /^\/media\/([a-z0-9]+(?:\.[a-z0-9]+)?)\?(download=1&)?expires=([1-9][0-9]{0,11})&key=([a-z0-9]{1,32})&signature=([\w-]{43})(&variants=all)?(?:&(?:variant=([a-z0-9-]{1,32})|(w)=[1-9][0-9]{0,4})(&variants=all)?(?:&wait=([1-5]?[0-9]|60))?)?$/

/** Whether a request target has a signature, well-formed or not. */
export const hasSignature = (url: string): boolean => /[?&]signature=/.test(url)

/** Parses the target of a request as `signUrl` writes it; null for any other spelling. The signature is not verified. */
export function parseSignedUrl(url: string): SentSignedUrl | null {
  const [, name, download, expires, keyId, signature, all, variant, width, sortedAll, wait] =
    shape.exec(url) ?? []
  if (name === undefined || keyId === undefined || signature === undefined) return null
  // A proxy that sorts parameters moves the name of a size before `variants`.
  const grantsAll = all !== undefined || (sortedAll !== undefined && variant !== undefined)
  if ((all !== undefined && sortedAll !== undefined) || (width !== undefined && all === undefined))
    return null
  return {
    ...{ name, variant: grantsAll ? allVariants : (variant ?? null), isDownload: download !== undefined },
    ...{ expires: Number(expires), keyId, signature, wait },
  }
}

/** Compares in constant time. Compares texts: several texts of base64url can encode the same bytes. */
export function isSignedWith(secret: Uint8Array, signed: SignedUrl): boolean {
  const expected = Buffer.from(signatureOf(secret, signed))
  const sent = Buffer.from(signed.signature)
  return expected.length === sent.length && timingSafeEqual(expected, sent)
}

/** Seconds for which listed URLs are the same. They are valid for one to two of these windows (docs/interface.md H10). */
const linkWindow = 900

/** The expiry of listed URLs, and of links without a lifetime, in seconds since 1970. `now` is in milliseconds. */
export const windowExpiry = (now: number): number => (Math.floor(now / 1000 / linkWindow) + 2) * linkWindow

/** The expiry of a link in seconds since 1970. `now` is in milliseconds, the lifetime in seconds. */
export const linkExpiry = (now: number, lifetime: number): number => Math.ceil(now / 1000) + lifetime
