import { issuerSettings } from './issuer-settings.ts'
import {
  addressRanges,
  baseUrl,
  blobsUrl,
  databaseUrl,
  directory,
  duration,
  hostName,
  linkLifetime,
  oneOf,
  onOrOff,
  processes,
  rate,
  sendFile,
  size,
  sizeOrAuto,
  sizeOrZero,
  sizeUpTo,
  timerDuration,
  webOrigins,
  wholeNumber,
} from './readers.ts'
import { type Setting, setting } from './setting.ts'
import { variantSettings } from './variant-settings.ts'

/** Every setting of the service. docs/settings.md and `mediabucket help settings` show this table. */
const table = {
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
  MEDIABUCKET_WORKERS: setting(
    '1',
    processes(64),
    'The number of processes that handle requests. With `1`, the service is one process. With more, a further process starts them and restarts those that end. `auto` is one for each core.',
  ),
  MEDIABUCKET_BASE_URL: setting(
    '',
    baseUrl('without query or credentials', 'https://media.example.org'),
    'The first part of every URL in a response. Set it to the address that clients use, for example behind a reverse proxy. By default it follows host and port.',
  ),
  MEDIABUCKET_MEDIA_BASE_URL: setting(
    '',
    baseUrl('on another host than MEDIABUCKET_BASE_URL', 'https://media-usercontent.example.org'),
    'The first part of the URLs of files. Set it to a second host name of the service, so that browsers isolate uploaded files from the gallery and the API. By default it is the base URL.',
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
    'The form of a page in a response: the page object itself (`bare`) or the page object inside `{"data": …}` (`wrapped`). Set the form that your clients expect.',
  ),
  MEDIABUCKET_EXTENSIONS: setting(
    'on',
    onOrOff,
    'Whether media URLs end in the extension of the stored type, such as `.png`.',
  ),
  MEDIABUCKET_LINKS: setting(
    'all',
    oneOf('all', 'window'),
    'Whether a page links to all pages, or to a window around the current page. Set `window` to make the pages of large buckets smaller.',
  ),
  MEDIABUCKET_GALLERY: setting(
    'on',
    onOrOff,
    'Whether `/` serves the gallery, a web page on which people view, upload and delete files with a token.',
  ),
  MEDIABUCKET_PAGE_CACHE: setting(
    '32MB',
    sizeOrZero('32MB'),
    'Memory for rendered pages; 0 renders the page for each response. Raise it if clients list many different pages.',
  ),
  MEDIABUCKET_LINK_RIBBON: setting(
    '64MB',
    sizeOrZero('64MB'),
    'Memory for the page links that all pages share, about 80 bytes for each page of the largest bucket. Links beyond it are rendered for each response. Raise it for buckets of more than 8 million items.',
  ),
  MEDIABUCKET_BYTES_CACHE: setting(
    '64MB',
    sizeOrZero('64MB'),
    'Memory for files and thumbnails of up to 1 MiB each that are requested often; 0 reads them for each response. Raise it if more bytes than this are requested often.',
  ),
  MEDIABUCKET_SENDFILE: setting(
    'off',
    sendFile,
    'Who sends the bytes of large items instead of the service. A reverse proxy sends files of the disk: nginx with `x-accel-redirect:` and the path of an internal location, Apache and lighttpd with `x-sendfile`. With an S3 store, `x-accel-redirect:` lets nginx get the objects, and `redirect` sends clients of pictures, audio and video to signed URLs of the store. Except with `redirect`, clients must not reach the service without the proxy.',
  ),
  MEDIABUCKET_MAX_FILE_SIZE: setting(
    '5GB',
    size('500MB, 5GB or 2GiB'),
    'The maximum size of a file. Larger uploads are refused with 413.',
  ),
  MEDIABUCKET_INLINE_SIZE: setting(
    '64KiB',
    sizeUpTo(1024 * 1024, '64KiB, at most 1MiB'),
    'The maximum size of a file that is stored in the catalog, in one transaction with its row; 0 stores every file on the disk. Variants of up to this size are stored in variants.db. Changes affect later uploads only.',
  ),
  MEDIABUCKET_MAX_PARTS: setting(
    '1000',
    wholeNumber(1, 100_000),
    'The maximum number of parts in one form, files and fields together. Forms with more are refused with 413.',
  ),
  MEDIABUCKET_UPLOAD_EXPIRY: setting(
    '24h',
    duration,
    'How long a resumable upload is stored after its last byte, finished or not. Raise it if clients resume uploads after more than a day.',
  ),
  MEDIABUCKET_MIN_FREE: setting(
    'auto',
    sizeOrAuto,
    'Free disk space that uploads must leave, so that deletes and the service itself keep working. `auto` is a tenth of the file system, 64MB at the most.',
  ),
  MEDIABUCKET_CORS_ORIGINS: setting(
    '',
    webOrigins,
    'Web origins whose pages may call the service from a browser. None by default.',
  ),
  MEDIABUCKET_TRUSTED_PROXIES: setting(
    '',
    addressRanges,
    'Reverse proxies whose `X-Forwarded-For` header gives the address of the client. Limits and the audit log use the address. None by default.',
  ),
  ...issuerSettings,
  MEDIABUCKET_TOKEN_RATE: setting(
    '60000/1m',
    rate,
    'The maximum rate of requests with one token. Further requests are refused with 429.',
  ),
  MEDIABUCKET_ADDRESS_RATE: setting(
    '120000/1m',
    rate,
    'The maximum rate of requests from one client address, with or without tokens. Further requests are refused with 429.',
  ),
  MEDIABUCKET_AUTH_FAILURE_RATE: setting(
    '100/1m',
    rate,
    'The maximum rate of requests with invalid tokens from one client address. Further requests with invalid tokens are refused with 429. Requests with valid tokens are not affected.',
  ),
  MEDIABUCKET_MEDIA_MAX_AGE: setting(
    '1d',
    duration,
    'How long browsers and proxies may cache a file. A deleted file may stay in their caches for that time.',
  ),
  MEDIABUCKET_MAX_LINK_LIFETIME: setting(
    '7d',
    linkLifetime,
    'The longest lifetime of a signed URL that a client can request. Longer ones are refused with 400.',
  ),
  ...variantSettings,
  MEDIABUCKET_MAX_CONNECTIONS: setting(
    '5000',
    wholeNumber(0, 1_000_000),
    'The maximum number of open connections; 0 sets no limit.',
  ),
  MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS: setting(
    '1000',
    wholeNumber(0, 1_000_000),
    'The maximum number of open connections from one client address, or from one IPv6 /64 network; 0 sets no limit. `MEDIABUCKET_TRUSTED_PROXIES` are exempt.',
  ),
  MEDIABUCKET_HEADER_TIMEOUT: setting(
    '15s',
    timerDuration,
    'The maximum time for a client to send the headers of a request.',
  ),
  MEDIABUCKET_IDLE_TIMEOUT: setting(
    '60s',
    timerDuration,
    'The maximum time without data on a connection, during a request or between two requests. A reverse proxy must close idle connections sooner.',
  ),
  MEDIABUCKET_MIN_SEND_RATE: setting(
    '2KB',
    sizeOrZero('2KB or 64KB'),
    'The minimum rate at which a client must read a response, in bytes per second, measured over `MEDIABUCKET_IDLE_TIMEOUT`. Slower connections are closed; 0 sets no limit.',
  ),
  MEDIABUCKET_SHUTDOWN_TIMEOUT: setting(
    '10s',
    timerDuration,
    'The maximum time that a stop waits for requests in progress. If you raise it, raise the stop timeout of systemd or Docker too.',
  ),
  MEDIABUCKET_LOG_LEVEL: setting(
    'info',
    oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    'The lowest level that is logged. `warn` omits the line of each request.',
  ),
  MEDIABUCKET_AUDIT: setting(
    'off',
    oneOf('off', 'changes', 'all'),
    'What the audit log records, which `mediabucket audit` prints: nothing, changes, or changes and downloads (`all`). Set it for the service and for the commands.',
  ),
  MEDIABUCKET_AUDIT_DAYS: setting(
    '365',
    wholeNumber(1, 36_500),
    'How many days events stay in the audit log. The service removes earlier ones.',
  ),
  MEDIABUCKET_LOG_FORMAT: setting(
    'auto',
    oneOf('auto', 'json', 'text'),
    'The form of the log: one JSON object per line (`json`) or lines for people (`text`). `auto` is `text` on a terminal and `json` elsewhere.',
  ),
} as const

/** The type of each setting's value, by its name. */
export type Values = {
  readonly [Name in keyof typeof table]: (typeof table)[Name]['defaultValue']
}

export const settings: { readonly [Name in keyof Values]: Setting<Values[Name]> } = table
