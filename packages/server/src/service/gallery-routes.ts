import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import mime from 'mime'
import type { ClientMetadata } from '../access/issuer-keys.ts'
import { Fault } from '../core/faults.ts'
import type { SignInSettings } from '../core/issuer.ts'
import type { UrlSettings } from '../core/item-urls.ts'
import { builtInSizes, formatSize } from '../core/variant-sizes.ts'
import type { HttpContext, HttpSettings } from '../http/context.ts'
import { isSameHost } from '../http/dispatcher.ts'
import { acceptsCoding, matchesWeakly } from '../http/headers.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'

/** The sign-in of people at the gallery with an issuer. */
export interface GallerySignIn extends SignInSettings {
  /** Null while the issuer has not been reached. */
  metadata(): ClientMetadata | null
}

/**
 * Allows code from `assets` only, data from this origin and from those of the bytes, and nothing inline. The page itself
 * narrows `'self'` to its assets (packages/gallery/src/restrict-scripts.ts), since only the page knows its path.
 */
const contentSecurityPolicy = (assets: string, bytesHosts: string, issuer: string): string =>
  [
    "default-src 'none'",
    `script-src ${assets}`,
    `style-src ${assets}`,
    `img-src 'self'${bytesHosts}`,
    `media-src 'self'${bytesHosts}`,
    `connect-src 'self'${bytesHosts}${issuer}`,
    "worker-src 'none'",
    "manifest-src 'none'",
    "object-src 'none'",
    "frame-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    // No text becomes HTML or code, in browsers that know Trusted Types.
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')

/** Escapes the characters that end a path in a policy. */
const escapeSource = (url: string): string => url.replaceAll(';', '%3B').replaceAll(',', '%2C')

/** Returns a function from the requested host to the policy of the page. */
function createPolicy({
  baseUrl,
  hasOwnAddress,
  mediaBaseUrl,
  storeOrigin,
}: HttpSettings): (host: string, issuer: string) => string {
  const hosts = [mediaBaseUrl !== baseUrl && new URL(mediaBaseUrl).origin, storeOrigin]
  const bytesHosts = hosts.map((origin) => (origin ? ` ${origin}` : '')).join('')
  const elsewhere = (issuer: string) => contentSecurityPolicy("'self'", bytesHosts, issuer)
  if (!hasOwnAddress) return (_host, issuer) => elsewhere(issuer)
  const base = new URL(baseUrl)
  const assets = escapeSource(`${baseUrl}/assets/`)
  return (host, issuer) =>
    isSameHost(host, base) ? contentSecurityPolicy(assets, bytesHosts, issuer) : elsewhere(issuer)
}

const commonHeaders = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
}
const pageHeaders = {
  ...commonHeaders,
  'cache-control': 'no-cache',
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
}
/** The names of assets contain a hash of their bytes. */
const assetHeaders = { ...commonHeaders, 'cache-control': 'public, max-age=31536000, immutable' }

/** Where programs reach the S3 protocol. */
export interface S3Door {
  /** That of MEDIABUCKET_S3_HOST; null if it is not set. */
  readonly host: string | null
  readonly port: number
}

/** What the page learns of the service. */
interface GalleryFacts {
  /** Null where people sign in with tokens only. */
  readonly signIn: GallerySignIn | null
  /** Null where the S3 protocol is off. */
  readonly s3: S3Door | null
}

/**
 * The gallery (docs/interface.md, Gallery): its page, the page of upload links (G36), their assets, and `/sign-in.json`, what the page needs to sign people in with the
 * issuer (G25), to show keys for the S3 protocol (G45) and the sizes of the service (G41, G47). The OpenAPI document does not contain them.
 */
export function galleryRoutes(
  http: HttpContext,
  { page, uploadPage, assets }: Gallery,
  { signIn, s3 }: GalleryFacts,
): readonly Route[] {
  const pages = { policyFor: createPolicy(http.settings), vary: http.vary('Accept-Encoding'), signIn }
  const { baseUrl, hasOwnAddress } = http.settings
  // Without a configured base URL, the address of the request is as good.
  const uploadHeaders = hasOwnAddress ? { link: `<${baseUrl}/upload>; rel="canonical"` } : {}
  return [
    route('GET', '/', null, (exchange) => servePage(pages, exchange, page)),
    route('GET', '/upload', null, (exchange) => servePage(pages, exchange, uploadPage, uploadHeaders)),
    route('GET', '/upload/', null, redirectTo('../upload')),
    route('GET', '/gallery', null, redirectTo('./')),
    route('GET', '/gallery/', null, redirectTo('../')),
    route('GET', '/sign-in.json', null, () => describeSignIn(signIn, s3, http.urls)),
    route('GET', '/assets/:name', null, (exchange) => serveAsset(assets, pages.vary, exchange)),
  ]
}

/** What the responses with a page depend on. */
interface PageParts {
  readonly policyFor: ReturnType<typeof createPolicy>
  readonly vary: string
  readonly signIn: GallerySignIn | null
}

async function servePage(
  { policyFor, vary, signIn }: PageParts,
  exchange: Exchange,
  file: GalleryFile,
  more: Readonly<Record<string, string>> = {},
): Promise<Reply> {
  const policy = policyFor(exchange.request.headers.host ?? '', issuerSource(signIn))
  return serveFile(exchange, file, { ...pageHeaders, ...more, 'content-security-policy': policy, vary })
}

async function serveAsset(
  assets: Gallery['assets'],
  vary: string,
  exchange: Exchange<'name'>,
): Promise<Reply> {
  const file = assets.get(exchange.params.name)
  if (!file) throw new Fault('route-unknown', 'The service has no such path.')
  return serveFile(exchange, file, { ...assetHeaders, vary })
}

/** The file in the best coding that the client accepts. */
function serveFile({ request }: Exchange, file: GalleryFile, more: Readonly<Record<string, string>>): Reply {
  const accepted = request.headers['accept-encoding']
  const coding = (['br', 'gzip'] as const).find((name) => file[name] && acceptsCoding(accepted, name))
  const { bytes, etag } = (coding && file[coding]) ?? file.identity
  const headers = { ...more, etag, ...(coding ? { 'content-encoding': coding } : {}) }
  const match = request.headers['if-none-match']
  if (match !== undefined && matchesWeakly(match, etag)) return { status: 304, headers }
  return { status: 200, headers: { ...headers, 'content-type': file.contentType }, body: bytes }
}

async function describeSignIn(
  signIn: GallerySignIn | null,
  s3: S3Door | null,
  { variants = builtInSizes }: Pick<UrlSettings, 'variants'>,
): Promise<Reply> {
  const headers = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }
  return {
    status: 200,
    headers,
    json: { issuer: signIn && issuerObject(signIn), s3, sizes: variants.map(formatSize) },
  }
}

/** Leads from an address that people type to a page. Relative, because a proxy may put any path before both; browsers keep the fragment. */
const redirectTo = (location: string) => async (): Promise<Reply> => ({
  status: 302,
  headers: { ...commonHeaders, 'cache-control': 'no-cache', location },
})

/** The origins of the issuer, to which the page sends codes and refresh tokens. */
function issuerSource(signIn: GallerySignIn | null): string {
  const metadata = signIn?.metadata()
  if (!metadata) return ''
  const { token_endpoint, revocation_endpoint = token_endpoint } = metadata
  const origins = [token_endpoint, revocation_endpoint].map((url) => ` ${new URL(url).origin}`)
  return [...new Set(origins)].join('')
}

const issuerObject = ({ name, clientId, scope, parameters, metadata }: GallerySignIn) => ({
  name,
  client_id: clientId,
  scope,
  parameters,
  metadata: metadata(),
})

/** A file in one content coding, with the strong entity tag of its bytes. */
interface EncodedFile {
  readonly bytes: Buffer
  readonly etag: string
}

/** A built file of the gallery; a coding is null where it is not smaller. */
interface GalleryFile {
  readonly contentType: string
  readonly identity: EncodedFile
  readonly br: EncodedFile | null
  readonly gzip: EncodedFile | null
}

export interface Gallery {
  readonly page: GalleryFile
  /** The page of upload links. */
  readonly uploadPage: GalleryFile
  /** Keyed by names below `/assets/`. */
  readonly assets: ReadonlyMap<string, GalleryFile>
}

/**
 * Reads the built gallery into memory: it does not change while the service runs, and no path of a request reaches the
 * disk. Returns null where it is not built.
 */
export function readGallery(directory: string): Gallery | null {
  if (['index.html', 'upload.html'].some((name) => !existsSync(join(directory, name)))) return null
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' })
  const isAsset = (name: string) => /^assets[/\\][^/\\]+$/.test(name) && !/\.(br|gz)$/.test(name)
  const existing = new Set(names)

  function readEncoded(name: string): EncodedFile | null {
    if (!existing.has(name)) return null
    const bytes = readFileSync(join(directory, name))
    return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` }
  }

  function read(name: string): GalleryFile {
    const [identity, br, gzip] = [readEncoded(name), readEncoded(`${name}.br`), readEncoded(`${name}.gz`)]
    if (identity === null) throw new Error(`the gallery has no ${name}`)
    return { contentType: contentType(name), identity, br, gzip }
  }

  const assets = names
    .filter(isAsset)
    .map((name): [string, GalleryFile] => [name.slice('assets/'.length), read(name)])
  return { page: read('index.html'), uploadPage: read('upload.html'), assets: new Map(assets) }
}

function contentType(name: string): string {
  const type = mime.getType(name) ?? 'application/octet-stream'
  return /^text\/|^image\/svg/.test(type) ? `${type}; charset=utf-8` : type
}
