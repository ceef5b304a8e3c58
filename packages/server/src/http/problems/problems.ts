import type { FaultCode } from '../../core/fault.ts'

interface ProblemKind {
  readonly status: number
  readonly title: string
  /** Why it happens, and what to do about it; shown at `/problems/{code}`. */
  readonly cause: string
  readonly cure: string
}

/** Every problem that an answer can carry: the one place where codes meet statuses (docs/interface.md P2). */
export const problemKinds: Readonly<Record<FaultCode, ProblemKind>> = {
  'page-malformed': {
    status: 400,
    title: 'The page number is malformed',
    cause: 'The query parameter `page` was not a plain whole number, or was given more than once.',
    cure: 'Send `page` once, as a whole number from 1 up without sign or leading zero, or leave it out for page 1.',
  },
  'request-malformed': {
    status: 400,
    title: 'The request is malformed',
    cause: 'The request is not valid HTTP, or its path cannot be decoded.',
    cure: 'Check the escapes in the URL, the headers and the length of the body.',
  },
  'authorization-repeated': {
    status: 400,
    title: 'More than one Authorization header',
    cause: 'The request carried several Authorization headers, so it is unclear who is asking.',
    cure: 'Send exactly one `Authorization: Bearer …` header.',
  },
  'token-missing': {
    status: 401,
    title: 'A token is needed',
    cause: 'The request carried no bearer token in its Authorization header.',
    cure: 'Send `Authorization: Bearer …`. A token in the URL is never accepted. `mediabucket token create` makes one.',
  },
  'token-malformed': {
    status: 401,
    title: 'The token is malformed',
    cause: 'What was sent is not a token of this service: its form or its checksum is wrong.',
    cure: 'Copy the token again, whole; it begins with `mbkt_` and is 43 characters long.',
  },
  'token-unknown': {
    status: 401,
    title: 'The token is unknown',
    cause: 'The token is well formed, but this service holds no such token.',
    cure: 'Check that token and service belong together, or make a token with `mediabucket token create`.',
  },
  'token-expired': {
    status: 401,
    title: 'The token has expired',
    cause: 'The token was made with an expiry, and that time has come.',
    cure: 'Make a new token with `mediabucket token create`.',
  },
  'token-revoked': {
    status: 401,
    title: 'The token was revoked',
    cause: 'Somebody revoked this token.',
    cure: 'Make a new token with `mediabucket token create`.',
  },
  'scope-missing': {
    status: 403,
    title: 'The token may not do this',
    cause: 'The token is good, but lacks the scope that this operation needs.',
    cure: 'Use a token with the scope named in the answer; `mediabucket token create --scope …` makes one.',
  },
  'destination-refused': {
    status: 403,
    title: 'The bytes are not served as code',
    cause:
      'A page loads an item as a script, style sheet, worker, module or manifest, or registers a service worker.',
    cure: 'Serve code from a web server of your own; here pages can load pictures, audio, video, and files to download.',
  },
  'route-unknown': {
    status: 404,
    title: 'There is nothing at this address',
    cause: 'The service has no such path.',
    cure: 'Check the path: uploads and listings live at `/api/media`, bytes at `/media/…`.',
  },
  'media-unknown': {
    status: 404,
    title: 'There is no such item',
    cause:
      'No item has this id, it was deleted, it belongs to another bucket, or the extension is not its own.',
    cure: 'List the bucket to see which items there are.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'The method is not allowed here',
    cause: 'The path exists, but not with this method.',
    cure: 'Use one of the methods in the `Allow` header of the answer.',
  },
  'request-timeout': {
    status: 408,
    title: 'The request took too long to arrive',
    cause: 'The headers of the request were not complete within the time allowed.',
    cure: 'Try again on a new connection.',
  },
  'precondition-failed': {
    status: 412,
    title: 'A precondition failed',
    cause: '`If-Match` or `If-Unmodified-Since` did not hold for the present bytes.',
    cure: 'Fetch the item anew and repeat the request with its present `ETag`.',
  },
  'file-too-large': {
    status: 413,
    title: 'The file is too large',
    cause: 'The file has more bytes than `MEDIABUCKET_MAX_FILE_SIZE` allows. Nothing was stored.',
    cure: 'Send a smaller file, or ask the operator to raise the limit.',
  },
  'parts-too-many': {
    status: 413,
    title: 'The form has too many parts',
    cause: 'The form has more parts than `MEDIABUCKET_MAX_PARTS` allows. Nothing was stored.',
    cure: 'Send the files in several requests.',
  },
  'body-too-large': {
    status: 413,
    title: 'The body is too large',
    cause: 'The operation takes no body of this size, or a part of a form that is no file is too large.',
    cure: 'Send no body, or upload files with `POST /api/media`.',
  },
  'content-coding-unsupported': {
    status: 415,
    title: 'The content coding is not supported',
    cause: 'The body was sent with a `Content-Encoding`; the service keeps bytes exactly as they are.',
    cure: 'Send the file itself, without `Content-Encoding`.',
  },
  'range-unsatisfiable': {
    status: 416,
    title: 'The range lies outside the file',
    cause: 'The requested range begins past the last byte.',
    cure: 'The size stands in `Content-Range`; ask for bytes before it.',
  },
  'variant-unknown': {
    status: 400,
    title: 'There is no variant with this name',
    cause: 'The query parameter `variant` was not the name of a variant, or was given more than once.',
    cure: 'Send `variant=thumb` or `variant=medium`, or leave it out for the bytes as they were sent.',
  },
  'variant-unavailable': {
    status: 404,
    title: 'The item cannot be pictured',
    cause:
      'Variants are made of JPEG, PNG, GIF, WebP, TIFF and AVIF. The item is of another type, is damaged, or would take more pixels, time or memory than the service allows; or the service runs where pictures cannot be made.',
    cure: 'Show an icon in its place, or fetch the bytes without `variant`.',
  },
  'variants-busy': {
    status: 503,
    title: 'Too many pictures are being made',
    cause: 'The variant has to be made first, and as many as may are waiting already.',
    cure: 'Try again after the seconds in `Retry-After`.',
  },
  'rate-limited': {
    status: 429,
    title: 'Too many requests',
    cause:
      'The token, the address of the client, or the tokens that are not valid from that address exceeded a rate limit; `RateLimit-Policy` names it.',
    cure: 'Wait for the seconds in `Retry-After`, then repeat the request. Operators set the limits by `MEDIABUCKET_TOKEN_RATE`, `MEDIABUCKET_ADDRESS_RATE` and `MEDIABUCKET_AUTH_FAILURE_RATE`.',
  },
  'connections-too-many': {
    status: 503,
    title: 'Too many connections are open',
    cause:
      'The service has as many open connections as `MEDIABUCKET_MAX_CONNECTIONS` allows, or as many from one address as `MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS` allows.',
    cure: 'Reuse connections, close those that are not needed, and try again after the seconds in `Retry-After`.',
  },
  'method-unsupported': {
    status: 501,
    title: 'The method is not supported',
    cause:
      'No operation of the service has the method of the request. `CONNECT` and the methods of RTSP are of this kind.',
    cure: 'Use the methods of the interface; `/docs` lists them.',
  },
  'transfer-coding-unsupported': {
    status: 501,
    title: 'The transfer coding is not supported',
    cause: 'The body was sent with another `Transfer-Encoding` than `chunked` alone.',
    cure: 'Send the body with `Transfer-Encoding: chunked`, or with a `Content-Length`.',
  },
  'http-version-unsupported': {
    status: 505,
    title: 'The version of HTTP is not supported',
    cause: 'The request is of another version than HTTP/1.1 or HTTP/1.0, or of another protocol.',
    cure: 'Use HTTP/1.1. For HTTP/2, put a reverse proxy in front of the service.',
  },
  'headers-too-large': {
    status: 431,
    title: 'The headers are too large',
    cause: 'The headers of the request exceed 16 KiB, or are more than 100.',
    cure: 'Send fewer or shorter headers.',
  },
  'form-malformed': {
    status: 400,
    title: 'The form is malformed',
    cause: 'The body is not valid multipart/form-data. Nothing was stored.',
    cure: 'Let a library or `curl -F` build the form, and do not set its Content-Type by hand.',
  },
  'form-without-file': {
    status: 400,
    title: 'The form holds no file',
    cause: 'None of the parts of the form is a file. Nothing was stored.',
    cure: 'Give at least one part a filename, as `curl -F file=@photo.jpg` does.',
  },
  'upload-incomplete': {
    status: 400,
    title: 'The upload ended early',
    cause: 'The connection or the form ended before the whole body had arrived. Nothing was stored.',
    cure: 'Send it again.',
  },
  'filename-malformed': {
    status: 400,
    title: 'The Content-Disposition header is malformed',
    cause: 'The header does not follow RFC 6266. Nothing was stored.',
    cure: 'Send `Content-Disposition: attachment; filename="name.ext"`, or leave the header out.',
  },
  'bytes-missing': {
    status: 500,
    title: 'The bytes of this item are damaged or gone',
    cause: 'The item is listed, but what is stored under it is missing or has another length.',
    cure: 'Tell the operator the `instance` of the answer; the bytes must come back from a backup.',
  },
  'storage-full': {
    status: 507,
    title: 'The storage is full',
    cause: 'The disk has no room for this upload. Nothing was stored.',
    cure: 'Delete items or enlarge the disk, then send it again.',
  },
  'quota-exceeded': {
    status: 507,
    title: 'The bucket is full',
    cause: 'The bucket has a quota, and the upload does not fit into what is left of it. Nothing was stored.',
    cure: 'Delete items, or ask the operator for more room: `mediabucket bucket set NAME --max-items N --max-bytes SIZE`.',
  },
  'idempotency-key-malformed': {
    status: 400,
    title: 'The Idempotency-Key is malformed',
    cause:
      'The header was sent more than once, is empty or too long, or holds characters that a key may not have.',
    cure: 'Send one `Idempotency-Key` for each upload, such as a UUID, in quotes or without.',
  },
  'idempotency-key-reused': {
    status: 422,
    title: 'The Idempotency-Key was used for another upload',
    cause: 'This token sent the same key before, with other files, names or types. Nothing was stored.',
    cure: 'Use a new key for a new upload; repeat a key only with the very same content.',
  },
  'upload-unknown': {
    status: 404,
    title: 'There is no such upload',
    cause: 'No upload has this id: it never existed, was ended, has expired, or belongs to another bucket.',
    cure: 'Begin anew with `POST /api/uploads`.',
  },
  'upload-malformed': {
    status: 400,
    title: 'The headers of the upload are malformed',
    cause: 'A header of the tus protocol is missing, or its value is not what the protocol asks for.',
    cure: 'Use a tus 1.0.0 client; the detail names the header.',
  },
  'upload-version-unsupported': {
    status: 412,
    title: 'The version of tus is not supported',
    cause: 'The request has no `Tus-Resumable` header, or one with another version than the service speaks.',
    cure: 'Send `Tus-Resumable: 1.0.0`; the versions stand in `Tus-Version`.',
  },
  'upload-type-unsupported': {
    status: 415,
    title: 'The content type is not that of an upload in pieces',
    cause: 'A piece of an upload was sent with another content type than the tus protocol asks for.',
    cure: 'Send `Content-Type: application/offset+octet-stream`.',
  },
  'upload-offset-conflict': {
    status: 409,
    title: 'The offset is not where the upload stands',
    cause: '`Upload-Offset` differs from what has arrived, or another request has taken the upload over.',
    cure: 'Ask for the offset with `HEAD` and go on from there.',
  },
  'checksum-malformed': {
    status: 400,
    title: 'The checksum cannot be used',
    cause:
      '`Upload-Checksum` names an algorithm that the service does not know, or is not valid Base64 of its length.',
    cure: 'Send `sha1` or `sha256`, a space and the Base64 of the checksum; `OPTIONS /api/uploads` tells the algorithms.',
  },
  'checksum-mismatch': {
    status: 460,
    title: 'The checksum does not match',
    cause: 'The bytes that arrived are not those of `Upload-Checksum`. They were dropped.',
    cure: 'Send the piece again from the same offset.',
  },
  'catalog-busy': {
    status: 503,
    title: 'The service is busy',
    cause: 'Another process held the catalog for longer than the service waits.',
    cure: 'Try again after the seconds in `Retry-After`.',
  },
  overloaded: {
    status: 503,
    title: 'The service is out of resources',
    cause: 'The machine has no file descriptor, memory, thread or process left for the request.',
    cure: 'Try again after the seconds in `Retry-After`; the operator may raise the limits, such as that of open files.',
  },
  'storage-unavailable': {
    status: 503,
    title: 'The stored bytes cannot be reached',
    cause: 'The directory in which the service stores bytes is not there: its disk may not be mounted.',
    cure: 'Try again after the seconds in `Retry-After`; the operator may have to mount the disk again.',
  },
  'shutting-down': {
    status: 503,
    title: 'The service is stopping',
    cause: 'The service was told to stop and finishes the requests under way.',
    cure: 'Try again after the seconds in `Retry-After`.',
  },
  'not-ready': {
    status: 503,
    title: 'The service is not ready',
    cause: '`/readyz` found that the service cannot read or store data; `detail` names the reasons.',
    cure: 'Operators look up the reasons in docs/operations.md and in the log.',
  },
  internal: {
    status: 500,
    title: 'Something went wrong inside the service',
    cause: 'An unexpected error. The log holds it under the `instance` of the answer.',
    cure: 'Tell the operator the `instance`.',
  },
}
