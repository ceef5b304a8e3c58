import {
  addressRanges,
  baseUrl,
  blobsUrl,
  bucketOptionList,
  bucketPattern,
  callableAddresses,
  claimName,
  databaseUrl,
  directory,
  duration,
  hostName,
  hostOrNone,
  issuerUrl,
  jwtScopeNames,
  linkLifetime,
  oneOf,
  onOrOff,
  portOrOff,
  processes,
  queryParameters,
  type Reader,
  rate,
  regionName,
  scannerAddress,
  sendFile,
  size,
  sizeOrAuto,
  sizeOrZero,
  sizeUpTo,
  textOrNone,
  timerDuration,
  timerDurationOrOff,
  variantSizes,
  webOrigins,
  wholeNumber,
} from './setting-readers.ts'

interface Setting<T> {
  readonly reader: Reader<T>
  readonly defaultText: string
  readonly defaultValue: T
  /** What the setting does, its unit, and when to change it. */
  readonly description: string
  /** The value contains a password, and is not shown. */
  readonly isSecret: boolean
}

/** Throws TypeError if the default is not a value of the setting. */
function setting<T>(
  defaultText: string,
  reader: Reader<T>,
  description: string,
  isSecret = false,
): Setting<T> {
  const defaultValue = reader.read(defaultText)
  if (defaultValue === undefined) throw new TypeError(`the default ${defaultText} is not ${reader.accepts}`)
  return { reader, defaultText, defaultValue, description, isSecret }
}

/** The defaults that differ with less than 512 MiB of memory, in a container or on a machine. */
export const littleMemoryDefaults: Readonly<Record<string, string>> = {
  MEDIABUCKET_CACHE: '16MB',
  MEDIABUCKET_VARIANT_PROCESSES: '1',
}

/** The start of the name of every setting. */
export const prefix = 'MEDIABUCKET_'

/** Every setting of the service. `npm run docs:pages` writes docs/settings.md from this table, `mediabucket help settings` shows it. */
export const settings = {
  MEDIABUCKET_HOST: setting(
    '127.0.0.1',
    hostName,
    'The address or host name to listen on. Set `0.0.0.0` or `::` to accept connections from other machines.',
  ),
  MEDIABUCKET_PORT: setting(
    '8080',
    wholeNumber(0, 65_535, 'a port'),
    'The TCP port to listen on; 0 selects a free port.',
  ),
  MEDIABUCKET_S3_PORT: setting(
    'off',
    portOrOff,
    'The TCP port for programs that speak the S3 protocol (docs/s3.md), on the same address; 0 selects a free port.',
  ),
  MEDIABUCKET_S3_HOST: setting(
    '',
    hostOrNone,
    'The host name of the S3 protocol, such as `s3.example.org`, for programs that name the bucket in the host (`bucket.s3.example.org`), not in the path.',
  ),
  MEDIABUCKET_S3_REGION: setting(
    'us-east-1',
    regionName,
    'The region of all buckets, for programs that ask the S3 protocol for it. Requests can be signed for any region.',
  ),
  MEDIABUCKET_S3_BUCKET_OPTIONS: setting(
    '',
    bucketOptionList,
    'The options of a bucket that the S3 protocol creates, such as `public-keys=on` where programs create buckets and store public objects in them.',
  ),
  MEDIABUCKET_WORKERS: setting(
    '1',
    processes(64),
    'The number of processes that handle requests. `auto` is one for each core.',
  ),
  MEDIABUCKET_BASE_URL: setting(
    '',
    baseUrl('without query or credentials', 'https://media.example.org'),
    'The first part of every URL in a response. Set it to the address that clients use. By default it follows host and port.',
  ),
  MEDIABUCKET_MEDIA_BASE_URL: setting(
    '',
    baseUrl('on another host than MEDIABUCKET_BASE_URL', 'https://media-usercontent.example.org'),
    'The first part of the URLs of files: a second host name of the service, so that browsers isolate uploaded files from the gallery and the API.',
  ),
  MEDIABUCKET_DATA: setting('./data', directory, 'The directory of the catalog and the files.'),
  MEDIABUCKET_DATABASE_URL: setting(
    '',
    databaseUrl,
    'A PostgreSQL database for the catalog, version 15 or newer. By default the catalog is a SQLite database in `MEDIABUCKET_DATA`. `sslmode` selects TLS as in libpq; without it the connection is not encrypted. With several servers (`host1:5432,host2:5432`) the service uses the one that is the primary, also after a failover.',
    true,
  ),
  MEDIABUCKET_BLOBS_URL: setting(
    '',
    blobsUrl,
    'The bucket of an S3 store for the files, such as `s3://media/files?endpoint=https://s3.example.org&region=eu-1`; with an endpoint, the bucket is in the path of URLs unless `path_style=false`. Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the other sources of the AWS SDK. By default the files are in the data directory.',
  ),
  MEDIABUCKET_ENVELOPE: setting(
    'bare',
    oneOf('bare', 'wrapped'),
    'The form of a page of `GET /api/media`: the page object (`bare`), or inside `{"data": …}` (`wrapped`).',
  ),
  MEDIABUCKET_EXTENSIONS: setting(
    'on',
    onOrOff,
    'Whether media URLs end in the extension of the stored type, such as `.png`.',
  ),
  MEDIABUCKET_LINKS: setting(
    'all',
    oneOf('all', 'window'),
    'Whether a page links to all pages, or to a window around it, which makes pages of large buckets smaller.',
  ),
  MEDIABUCKET_GALLERY: setting('on', onOrOff, 'Whether `/` serves the gallery (docs/gallery.md).'),
  MEDIABUCKET_CACHE: setting(
    '160MB',
    sizeOrZero('160MB'),
    'Memory for what is requested often: pages (a fifth), their links (two fifths), and files and thumbnails of up to 1 MiB each. With less than 512 MiB of memory, the default is `16MB`. Raise it for buckets of more than 8 million items: a page has a link of about 80 bytes to each page.',
  ),
  MEDIABUCKET_SENDFILE: setting(
    'off',
    sendFile,
    'Who sends the bytes of large items instead of the service. A reverse proxy sends files of the disk: nginx with `x-accel-redirect:` and the path of an internal location, Apache and lighttpd with `x-sendfile`. With an S3 store, `x-accel-redirect:` lets nginx get the objects, and `redirect` sends clients of pictures, audio and video to signed URLs of the store. Except with `redirect`, clients must not reach the service without the proxy.',
  ),
  MEDIABUCKET_MAX_FILE_SIZE: setting('5GB', size('500MB, 5GB or 2GiB'), 'The maximum size of a file.'),
  MEDIABUCKET_INLINE_SIZE: setting(
    '64KiB',
    sizeUpTo(1024 * 1024, '64KiB, at most 1MiB'),
    'The maximum size of a file that is stored in the catalog, and of a variant in variants.db; 0 stores every file on the disk. Changes affect later uploads only.',
  ),
  MEDIABUCKET_UPLOAD_EXPIRY: setting(
    '24h',
    duration,
    'How long a resumable upload is stored after its last byte, finished or not.',
  ),
  MEDIABUCKET_MIN_FREE: setting(
    'auto',
    sizeOrAuto,
    'Free disk space that uploads must leave. `auto` is a tenth of the file system, 64MB at the most.',
  ),
  MEDIABUCKET_CORS_ORIGINS: setting(
    '',
    webOrigins,
    'Web origins whose pages may call the service from a browser.',
  ),
  MEDIABUCKET_TRUSTED_PROXIES: setting(
    '',
    addressRanges,
    'Reverse proxies whose `X-Forwarded-For` header gives the address of the client, for limits and the audit log.',
  ),
  MEDIABUCKET_WEBHOOK_ALLOW: setting(
    '',
    addressRanges,
    'Addresses that webhooks may call although they do not belong to the public internet, such as `10.1.0.0/16` or `loopback`. Who manages webhooks can send requests to each of them.',
  ),
  MEDIABUCKET_URL_UPLOADS: setting(
    'off',
    callableAddresses,
    'The addresses from which tokens with `media:write` can have the service request files: `public` for the public internet, others such as `10.1.0.0/16`, or both. Who can upload can read what they respond to GET requests.',
  ),
  MEDIABUCKET_SCAN: setting(
    'off',
    scannerAddress,
    'What scans every file before it is stored (docs/operations/scanning.md).',
  ),
  MEDIABUCKET_SCAN_TIMEOUT: setting(
    '30s',
    timerDuration,
    'How long an upload waits for its turn, and then for the scan of a file, also while the scanner cannot be reached.',
  ),
  MEDIABUCKET_SCAN_FAILURE: setting(
    'refuse',
    oneOf('refuse', 'accept'),
    'Whether files that the scanner does not scan are refused or stored.',
  ),
  MEDIABUCKET_MCP: setting(
    'off',
    oneOf('off', 'read', 'write'),
    'Whether `/mcp` serves the Model Context Protocol, with the tools that read, or also those that change something (docs/agents.md).',
  ),
  MEDIABUCKET_JWT_ISSUER: setting(
    '',
    issuerUrl,
    'The issuer of JWTs that are accepted besides tokens of the service: the users of an app. Equals their claim `iss`.',
  ),
  MEDIABUCKET_JWT_JWKS_URL: setting(
    '',
    issuerUrl,
    'The URL of the issuer’s keys (JSON Web Key Set). By default the discovery document names it.',
  ),
  MEDIABUCKET_JWT_AUDIENCE: setting(
    '',
    textOrNone('a text without control characters'),
    'The audience of accepted JWTs, a value of their claim `aud`. Required with an issuer.',
  ),
  MEDIABUCKET_JWT_BUCKET: setting(
    'user-{sub}',
    bucketPattern,
    'The name of the bucket of a JWT’s user, with the value of a claim.',
  ),
  MEDIABUCKET_JWT_CREATE_BUCKETS: setting(
    'off',
    onOrOff,
    'Whether the first request of a user creates the bucket.',
  ),
  MEDIABUCKET_JWT_BUCKET_OPTIONS: setting(
    '',
    bucketOptionList,
    'The options of a bucket that is created so.',
  ),
  MEDIABUCKET_JWT_SCOPES: setting(
    'scope',
    claimName,
    'The claim of JWTs with the scopes: a text with spaces, or an array. Other scopes than those of the service are ignored.',
  ),
  MEDIABUCKET_JWT_DEFAULT_SCOPES: setting(
    '',
    jwtScopeNames,
    'The scopes of JWTs that name none of the service. Set it if the issuer cannot add scopes.',
  ),
  MEDIABUCKET_OIDC_CLIENT_ID: setting(
    '',
    textOrNone('a text without control characters'),
    'The id of the gallery as a public client of the issuer, with which people sign in there (docs/users.md).',
  ),
  MEDIABUCKET_OIDC_PARAMETERS: setting(
    '',
    queryParameters,
    'Further parameters of the authorization request. With some, issuers select the audience of the JWT: `resource=…` (RFC 8707), or `audience=…` for Auth0. `scope` replaces the requested scopes, `openid media:read media:write media:delete`. Add `offline_access` if the issuer requires it for refresh tokens.',
  ),
  MEDIABUCKET_TOKEN_RATE: setting('60000/1m', rate, 'The maximum rate of requests with one token.'),
  MEDIABUCKET_ADDRESS_RATE: setting(
    '120000/1m',
    rate,
    'The maximum rate of requests from one client address, with or without tokens.',
  ),
  MEDIABUCKET_AUTH_FAILURE_RATE: setting(
    '100/1m',
    rate,
    'The maximum rate of requests with invalid tokens from one client address.',
  ),
  MEDIABUCKET_MEDIA_MAX_AGE: setting(
    '1d',
    duration,
    'How long browsers and proxies may cache a file. A deleted file may stay there for that time.',
  ),
  MEDIABUCKET_MAX_LINK_LIFETIME: setting(
    '7d',
    linkLifetime,
    'The longest lifetime of a signed URL that a client can request.',
  ),
  MEDIABUCKET_VARIANTS: setting(
    'thumb=400, medium=1600',
    variantSizes,
    'The sizes of variants (smaller pictures) by name, in pixels. One number is a square; a number without a name is its own name. `thumb` and `medium` always exist. A bucket can have sizes of its own (`bucket set --variants`).',
  ),
  MEDIABUCKET_NAMES: setting(
    'off',
    onOrOff,
    'Whether the URLs of media objects and of links have the name of the item: `/media/«id»/«name».«ext»`. A request can choose with `names`.',
  ),
  MEDIABUCKET_CROP: setting(
    'center',
    oneOf('center', 'attention'),
    'What sizes that cut (`cover`) keep of pictures without a focus: the middle, or the part that attracts the eye. A bucket can have a choice of its own (`bucket set --crop`).',
  ),
  MEDIABUCKET_RENDER_AHEAD: setting(
    'on',
    onOrOff,
    'Whether the `thumb` of a new item is rendered in the background after the upload, rather than at the first request. Set `off` if most items are never viewed.',
  ),
  MEDIABUCKET_VARIANT_PROCESSES: setting(
    '2',
    wholeNumber(1, 64),
    'The maximum number of processes that generate variants (thumbnails) of pictures. Pictures of videos, PDF and HEIC files have further processes: half as many, but at least two if this is not 1. With less than 512 MiB of memory, the default is 1.',
  ),
  MEDIABUCKET_VARIANT_TIMEOUT: setting(
    '20s',
    timerDuration,
    'The maximum time to generate one variant. A picture that takes longer has no variants.',
  ),
  MEDIABUCKET_VARIANT_MEMORY: setting(
    '600MB',
    size('600MB or 2GB'),
    'The maximum memory of each of these processes; the process itself needs about 80 MB. A picture that needs more has no variants.',
  ),
  MEDIABUCKET_MAX_CONNECTIONS: setting(
    '5000',
    wholeNumber(0, 1_000_000),
    'The maximum number of open connections; 0 sets no limit.',
  ),
  MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS: setting(
    '1000',
    wholeNumber(0, 1_000_000),
    'The maximum number of open connections from one client address, or IPv6 /64 network; 0 sets no limit. `MEDIABUCKET_TRUSTED_PROXIES` are exempt.',
  ),
  MEDIABUCKET_MAX_STREAMS_PER_TOKEN: setting(
    '1000',
    wholeNumber(0, 1_000_000),
    'The maximum number of streams of changes and of requests that wait for changes (`GET /api/changes`) of one token, in each process; 0 sets no limit.',
  ),
  MEDIABUCKET_IDLE_TIMEOUT: setting(
    '60s',
    timerDuration,
    'The maximum time without data on a connection, during a request or between two requests. A reverse proxy must close idle connections sooner. The headers of a request have a quarter of it, 15 seconds at most.',
  ),
  MEDIABUCKET_SHUTDOWN_TIMEOUT: setting(
    '10s',
    timerDuration,
    'The maximum time that a stop waits for requests in progress. If you raise it, raise the stop timeout of systemd or Docker too.',
  ),
  MEDIABUCKET_SHUTDOWN_DELAY: setting(
    'off',
    timerDurationOrOff,
    'How long a service that was told to stop still accepts requests, while `/readyz` returns 503. Set it to the time in which a load balancer notices that, and raise the stop timeout of systemd or Docker too.',
  ),
  MEDIABUCKET_READ_ONLY: setting(
    'off',
    onOrOff,
    'Whether requests that change something are refused with 503. Reads continue.',
  ),
  MEDIABUCKET_LOG_LEVEL: setting(
    'info',
    oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    'The lowest level that is logged. `warn` omits the line of each request.',
  ),
  MEDIABUCKET_AUDIT: setting(
    'off',
    oneOf('off', 'changes', 'all'),
    'What the audit log records, which `mediabucket audit` prints: nothing, changes, or changes and downloads (`all`), also of commands.',
  ),
  MEDIABUCKET_AUDIT_DAYS: setting(
    '365',
    wholeNumber(1, 36_500),
    'How many days events stay in the audit log.',
  ),
  MEDIABUCKET_CHANGES_DAYS: setting(
    '7',
    wholeNumber(1, 3_650),
    'How many days changes of items stay in the feed (`GET /api/changes`). A client that was away for longer lists the items again.',
  ),
  MEDIABUCKET_LOG_FORMAT: setting(
    'auto',
    oneOf('auto', 'json', 'text'),
    'The form of the log: one JSON object per line (`json`) or lines for people (`text`). `auto` is `text` on a terminal and `json` elsewhere.',
  ),
} as const

/** `JWT_JWKS_URL` as `jwtJwksUrl`. */
type Camel<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${Lowercase<First>}${Capitalize<Camel<Rest>>}`
  : Lowercase<Name>

type SettingName = keyof typeof settings

/** The value of each setting, such as `baseUrl` of MEDIABUCKET_BASE_URL. Durations are milliseconds, sizes bytes. */
export type SettingValues = {
  readonly [Name in SettingName as Name extends `MEDIABUCKET_${infer Rest}`
    ? Camel<Rest>
    : never]: (typeof settings)[Name]['defaultValue']
}

/**
 * The values of all settings. `read` returns that of one, and is called with its name. Its result has the type of the default, which the
 * compiler cannot follow through the names.
 */
export const readAll = (read: <T>(name: string, setting: Setting<T>) => T): SettingValues =>
  Object.fromEntries(
    Object.entries(settings).map(([name, each]) => [memberName(name), read<unknown>(name, each)]),
  ) as SettingValues

/** The member of SettingValues that has the value of a setting. */
const memberName = (name: string): string =>
  name
    .slice(prefix.length)
    .toLowerCase()
    .replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
