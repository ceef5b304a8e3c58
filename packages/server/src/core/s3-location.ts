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
