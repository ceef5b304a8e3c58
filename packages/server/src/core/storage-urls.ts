/** Where the bytes are in an S3 store. */
export interface S3Location {
  readonly bucket: string
  /** The first part of all keys: empty, or names that end in a slash. */
  readonly prefix: string
  /** The URL of the store; null for AWS. */
  readonly endpoint: string | null
  readonly region: string
  /** Whether the bucket is in the path of URLs instead of in the host name. */
  readonly pathStyle: boolean
}

const bucketName = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const prefixName = /^(?:[\w.-]+\/)*$/
const parameters: ReadonlySet<string> = new Set(['endpoint', 'region', 'path_style'])

/** `s3://bucket/prefix?endpoint=…&region=…&path_style=…`. Undefined for any other text. */
export function parseS3Location(text: string): S3Location | undefined {
  if (!text.startsWith('s3://') || !URL.canParse(text)) return undefined
  const { host: bucket, pathname, searchParams, username, hash } = new URL(text)
  if ([...searchParams.keys()].some((name) => !parameters.has(name)) || username !== '' || hash !== '')
    return undefined
  const names = pathname.replace(/^\/|\/$/g, '')
  const prefix = names === '' ? '' : `${names}/`
  const endpoint = searchParams.get('endpoint')
  const pathStyle = searchParams.get('path_style') ?? `${endpoint !== null}`
  if (!bucketName.test(bucket) || !prefixName.test(prefix) || !['true', 'false'].includes(pathStyle))
    return undefined
  if (endpoint !== null && !/^https?:\/\/[^/?#@]+\/?$/.test(endpoint)) return undefined
  return {
    bucket,
    prefix,
    endpoint,
    region: searchParams.get('region') ?? 'us-east-1',
    pathStyle: pathStyle === 'true',
  }
}

/** For people. */
export const locationText = ({ bucket, prefix, endpoint }: S3Location): string =>
  `s3://${bucket}/${prefix}${endpoint === null ? '' : ` at ${endpoint}`}`

/** The origin of the URLs of objects. The bucket is in the path if its name contains a dot, because no certificate covers such a host. */
export function storeOriginOf({ bucket, endpoint, region, pathStyle }: S3Location): string {
  const url = new URL(endpoint ?? `https://s3.${region}.amazonaws.com`)
  if (!pathStyle && !bucket.includes('.')) url.host = `${bucket}.${url.host}`
  return url.origin
}

/** Scheme and user, hosts, and the rest. A password may contain @. */
const parts = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/i

/**
 * Splits the URL of a PostgreSQL database, which may name several servers as in libpq (`host1:port1,host2:port2`), into one URL for each
 * of them. Returns null if the text is no such URL.
 */
export function splitDatabaseUrl(text: string): URL[] | null {
  const [, start = '', hosts = '', rest = ''] = parts.exec(text) ?? []
  const urls = hosts.split(',').map((host) => `${start}${host}${rest}`)
  return start !== '' && urls.every((url) => URL.canParse(url)) ? urls.map((url) => new URL(url)) : null
}

/** The same URL without its password. */
export function withoutPassword(text: string): string {
  const urls = splitDatabaseUrl(text) ?? []
  const [{ protocol, username, pathname, searchParams } = new URL('postgres://')] = urls
  searchParams.delete('password')
  const user = username === '' ? '' : `${username}@`
  const query = searchParams.size === 0 ? '' : `?${searchParams}`
  return `${protocol}//${user}${urls.map(({ host }) => host).join(',')}${pathname}${query}`
}

/** Who sends the bytes of large items instead of the service. */
export type SendFile =
  /** A reverse proxy sends files. */
  | { readonly header: 'x-sendfile' }
  /** The same, and it gets objects of a store. It finds both below this path, which begins with a slash and does not end with one. */
  | { readonly header: 'x-accel-redirect'; readonly prefix: string }
  /** Clients get objects from the store. */
  | { readonly header: 'location' }

/** `off`, `redirect`, `x-sendfile`, or `x-accel-redirect:` and a path. Undefined for any other text. */
export function parseSendFile(text: string): SendFile | null | undefined {
  if (text === 'off') return null
  if (text === 'redirect') return { header: 'location' }
  if (text === 'x-sendfile') return { header: 'x-sendfile' }
  const prefix = /^x-accel-redirect:((?:\/[\w.-]+)+)\/?$/.exec(text)?.[1]
  return prefix === undefined ? undefined : { header: 'x-accel-redirect', prefix }
}
