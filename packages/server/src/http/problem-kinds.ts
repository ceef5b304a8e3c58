import type { FaultCode } from '../core/faults.ts'
import { accessProblemKinds, type ProblemKind } from './access-problem-kinds.ts'

/** Every problem that a response can carry (docs/interface.md P2). `npm run docs:pages` writes docs/problems.md from this table. */
export const problemKinds: Readonly<Record<FaultCode, ProblemKind>> = {
  // Problems of the request itself: HTTP, path, method, headers, body.

  'request-malformed': {
    status: 400,
    title: 'The request is malformed',
    cause: 'The request is not valid HTTP, or its path cannot be decoded.',
    cure: 'Check the percent-encoding of the URL, the headers and the length of the body.',
  },
  'page-malformed': {
    status: 400,
    title: 'The page number is malformed',
    cause: '`page` is not a decimal integer, or is repeated.',
    cure: 'Send `page` once, as an integer from 1 up without sign or leading zero, or leave it out.',
  },
  'parameter-malformed': {
    status: 400,
    title: 'A query parameter is malformed',
    cause: 'Values that parameters do not accept, or repeated parameters. `errors` lists them.',
    cure: 'Send each parameter once, with a value that `errors` states, or leave it out.',
  },
  'cursor-malformed': {
    status: 400,
    title: 'The cursor is not valid for this list',
    cause:
      '`after` was changed, or belongs to another bucket, order or filters, or to data that a restore or a failover has replaced.',
    cure: 'Send the `next_cursor` of the previous response unchanged, with the same parameters, or start again without `after`.',
  },
  'json-malformed': {
    status: 400,
    title: 'The JSON body is not accepted',
    cause:
      'The body is not a JSON object in UTF-8, or has missing, unknown or wrong members. `errors` lists them.',
    cure: 'Send a JSON object with the members that `/docs` describes.',
  },
  'route-unknown': {
    status: 404,
    title: 'The path does not exist',
    cause: 'No operation has this path.',
    cure: 'Check the path: uploads and listings are at `/api/media`, bytes at `/media/…`.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'The method is not allowed',
    cause: 'The path does not support this method.',
    cure: 'Use one of the methods in the `Allow` header of the response.',
  },
  'request-timeout': {
    status: 408,
    title: 'The request took too long to arrive',
    cause: 'The headers or the JSON body were not complete within the time limit.',
    cure: 'Try again on a new connection.',
  },
  'cursor-expired': {
    status: 410,
    title: 'The feed does not reach back to the cursor',
    cause:
      'What follows the cursor is older than `MEDIABUCKET_CHANGES_DAYS`, or the cursor belongs to another bucket or to data that a restore, a migration or a failover has replaced.',
    cure: 'Request `since=now`, list the items with `GET /api/items`, and continue with the new cursor.',
  },
  'body-too-large': {
    status: 413,
    title: 'The body is too large',
    cause: 'The operation does not accept so large a body, or field of a form.',
    cure: 'Send a smaller body or none. Files are uploaded with `POST /api/media`.',
  },
  'content-type-unsupported': {
    status: 415,
    title: 'The content type of the body is not supported',
    cause: 'The operation takes a JSON body with its `Content-Type`.',
    cure: 'Send a `Content-Type` that `accepted` names.',
  },
  'headers-too-large': {
    status: 431,
    title: 'The headers are too large',
    cause: 'The request has more than 16 KiB of headers, or more than 100 headers.',
    cure: 'Send fewer or shorter headers.',
  },
  'method-unsupported': {
    status: 501,
    title: 'The method is not supported',
    cause: 'No operation of the service uses the method of the request.',
    cure: 'Use the methods that `/docs` lists.',
  },
  'transfer-coding-unsupported': {
    status: 501,
    title: 'The transfer coding is not supported',
    cause: 'The `Transfer-Encoding` of the body is not `chunked` alone.',
    cure: 'Send the body with `Transfer-Encoding: chunked`, or with a `Content-Length`.',
  },
  'http-version-unsupported': {
    status: 505,
    title: 'The HTTP version is not supported',
    cause: 'The request is not one of HTTP/1.1 or HTTP/1.0.',
    cure: 'Use HTTP/1.1. For HTTP/2, put a reverse proxy in front of the service.',
  },

  ...accessProblemKinds,

  // Problems of stored items, their bytes and their variants.

  'media-unknown': {
    status: 404,
    title: 'The item does not exist',
    cause:
      'No item has this id, it was deleted or belongs to another bucket, or the extension is not its own; or the bucket is private, and the request has neither a token of it nor a signature.',
    cure: 'List the bucket. For bytes of a private bucket, send its token, or create a signed URL with `POST /api/media/{id}/links`.',
  },
  'signature-invalid': {
    status: 403,
    title: 'The signature of the URL is invalid',
    cause: 'The URL was changed after it was signed, or the key that signed it was removed.',
    cure: 'Use the URL unchanged, or ask for a new link.',
  },
  'link-expired': {
    status: 403,
    title: 'The link has expired',
    cause: 'The signed URL was valid until an earlier time.',
    cure: 'Ask for a new link. `POST /api/media/{id}/links` creates one.',
  },
  'destination-refused': {
    status: 403,
    title: 'Bytes are not served as code',
    cause: 'A page loads an item as a script, style sheet, worker, module or manifest.',
    cure: 'Serve code from another web server.',
  },
  'origin-refused': {
    status: 403,
    title: 'Pages of this origin are not accepted',
    cause: 'A page of another origin has sent a message of the Model Context Protocol.',
    cure: 'Let the program of the agent send it, or ask the operator to add the origin to `MEDIABUCKET_CORS_ORIGINS`.',
  },
  'precondition-failed': {
    status: 412,
    title: 'A precondition failed',
    cause: 'The item or the bucket does not meet the condition of `If-Match` or `If-Unmodified-Since`.',
    cure: 'Fetch it again and repeat the request with its current `ETag`.',
  },
  'range-unsatisfiable': {
    status: 416,
    title: 'The range is outside the file',
    cause: 'The requested range begins after the last byte.',
    cure: 'Request bytes below the size that `Content-Range` states.',
  },
  'variant-unknown': {
    status: 400,
    title: 'The variant does not exist',
    cause: '`variant` is not the name of a variant, or is repeated.',
    cure: 'Send `variant=thumb`, `variant=medium` or another name of MEDIABUCKET_VARIANTS, or leave it out for the original bytes.',
  },
  'variant-unavailable': {
    status: 404,
    title: 'The item has no variants',
    cause:
      'Variants exist for JPEG, PNG, GIF, WebP, TIFF and AVIF, and for videos, PDF and HEIC if the programs for them are installed. The item has another type, is damaged, or exceeds the limits of pixels, time or memory; or this machine cannot render variants.',
    cure: 'Show an icon instead, or fetch the bytes without `variant`.',
  },
  'variants-busy': {
    status: 503,
    title: 'Too many variants are being rendered',
    cause: 'The queue of variants to render is full.',
    cure: 'Try again after the seconds in `Retry-After`.',
  },
  'bytes-missing': {
    status: 500,
    title: 'The bytes of this item are damaged or missing',
    cause: 'They are missing, damaged or of another length.',
    cure: 'Send the operator the `instance` of the response. The bytes must be restored from a backup.',
  },

  // Problems of uploads in one request. `upload-incomplete`, `content-coding-unsupported`, `file-too-large`, `quota-exceeded`
  // and `storage-full` apply to resumable uploads too.

  'form-malformed': {
    status: 400,
    title: 'The form is malformed',
    cause: 'The body is not valid multipart/form-data. Nothing was stored.',
    cure: 'Use a library or `curl -F` to build the form, and do not set its Content-Type by hand.',
  },
  'form-without-file': {
    status: 400,
    title: 'The form has no file',
    cause: 'No part of the form is a file. Nothing was stored.',
    cure: 'Give at least one part a filename, as `curl -F file=@photo.jpg` does.',
  },
  'upload-incomplete': {
    status: 400,
    title: 'The upload ended early',
    cause: 'The connection or the form ended too early. Nothing was stored.',
    cure: 'Send the upload again.',
  },
  'filename-malformed': {
    status: 400,
    title: 'The Content-Disposition header is malformed',
    cause: 'The header does not follow RFC 6266. Nothing was stored.',
    cure: 'Send `Content-Disposition: attachment; filename="name.ext"`, or leave the header out.',
  },
  'file-unreadable': {
    status: 422,
    title: 'The metadata of the file cannot be removed',
    cause:
      'The bucket removes metadata, and this file is damaged or of an unknown form, would not show the same afterwards, or would lose the time that the bucket keeps. Nothing was stored.',
    cure: 'Save the file again with another program, or upload it to a bucket that does not remove metadata.',
  },
  'file-refused': {
    status: 422,
    title: 'The scanner refuses the file',
    cause:
      'It has found malware, or does not scan files of this size (`MEDIABUCKET_SCAN`). Nothing was stored.',
    cure: 'Check the file with an up-to-date virus scanner. If the file is harmless, ask the operator.',
  },
  'content-coding-unsupported': {
    status: 415,
    title: 'The content coding is not supported',
    cause: 'The body has a `Content-Encoding`.',
    cure: 'Send the file itself, without `Content-Encoding`.',
  },
  'file-too-large': {
    status: 413,
    title: 'The file is too large',
    cause:
      'The file has more bytes than `MEDIABUCKET_MAX_FILE_SIZE` or the limits of the token allow. Nothing was stored.',
    cure: 'Send a smaller file, or ask the operator to raise the limit.',
  },
  'parts-too-many': {
    status: 413,
    title: 'The form has too many parts',
    cause: 'The form has more than 1,000 parts. Nothing was stored.',
    cure: 'Send the files in several requests.',
  },
  'bucket-exists': {
    status: 409,
    title: 'A bucket has this name',
    cause: 'Another bucket has the name that the request states.',
    cure: 'Choose another name. For a repeated request, send the `Idempotency-Key` of the first one.',
  },
  'bucket-not-empty': {
    status: 409,
    title: 'The bucket has items',
    cause: 'Those in its trash count too.',
    cure: 'Send `items=delete` to delete them with the bucket.',
  },
  'idempotency-key-malformed': {
    status: 400,
    title: 'The Idempotency-Key is malformed',
    cause: 'The header is repeated, empty or too long, or has other characters than a key.',
    cure: 'Send one `Idempotency-Key` for each upload, such as a UUID, with or without quotes.',
  },
  'idempotency-key-reused': {
    status: 422,
    title: 'The Idempotency-Key was used for another request',
    cause:
      'An earlier request with this token and key had other files, names, types or labels, or stated another bucket. Nothing was stored.',
    cure: 'Use a new key for a new request; repeat a key only with identical content.',
  },
  'quota-exceeded': {
    status: 507,
    title: 'The bucket is full',
    cause: 'The upload does not fit into its quota. Nothing was stored.',
    cure: 'Delete items, or ask the operator to raise the quota: `mediabucket bucket set NAME --max-items N --max-bytes SIZE`.',
  },
  'token-limit-exceeded': {
    status: 507,
    title: 'The token may not upload more',
    cause: 'The upload would exceed the limit of items or bytes that `errors` names. Nothing was stored.',
    cure: 'Send fewer or smaller files, or ask the person who created the token for another one. `GET /api/token` returns what is left.',
  },
  'type-refused': {
    status: 415,
    title: 'Files of this type are not accepted',
    cause:
      'Only the types that `errors` names are accepted, which are detected from the bytes. Nothing was stored.',
    cure: 'Send a file of one of these types. SVG, JSON and other types that the bytes do not show must be named in the limits, such as `image/svg+xml`.',
  },
  'storage-full': {
    status: 507,
    title: 'The storage is full',
    cause: 'The disk has no space for this upload. Nothing was stored.',
    cure: 'Delete items or enlarge the disk, then send the upload again.',
  },

  // Problems of uploads from a URL. Not 502 and 504: clients repeat those at once, and proxies replace their bodies.

  'url-uploads-off': {
    status: 403,
    title: 'Uploads from a URL are off',
    cause:
      'The service requests no files from other servers unless `MEDIABUCKET_URL_UPLOADS` allows it, or the bucket stores none (`url_uploads`).',
    cure: 'Download the file and upload its bytes, or ask the operator.',
  },
  'url-uploads-too-many': {
    status: 429,
    title: 'Too many uploads from URLs are in progress',
    cause: 'The token has 4 uploads from URLs that have not ended, or the service has 32.',
    cure: 'Wait for one of them to end, and repeat the request after the seconds in `Retry-After`.',
  },
  'source-refused': {
    status: 422,
    title: 'The URL may not be requested',
    cause:
      'Its host, or that of a redirect, has an address that `MEDIABUCKET_URL_UPLOADS` does not allow, or a redirect leads to another protocol. Nothing was stored.',
    cure: 'Use a URL of the public internet, or ask the operator.',
  },
  'source-failed': {
    status: 424,
    title: 'The server of the URL did not send the file',
    cause:
      'It cannot be reached, responded with the status `source_status`, or ended the file early. Nothing was stored.',
    cure: 'Check that the URL returns the file without a sign-in, and try again.',
  },
  'source-timeout': {
    status: 424,
    title: 'The server of the URL is too slow',
    cause:
      'It did not respond or sent nothing for 15 seconds, sent less than 1 kB in a second, or did not end the file within an hour. Nothing was stored.',
    cure: 'Try again later, or download the file and upload its bytes.',
  },
  'digest-mismatch': {
    status: 422,
    title: 'The file has another checksum',
    cause: 'It does not have the SHA-256 that the request states. Nothing was stored.',
    cure: 'Check the URL and the checksum.',
  },

  // Problems of the tus protocol.

  'upload-unknown': {
    status: 404,
    title: 'The upload does not exist',
    cause: 'The bucket has none with this id, or it was deleted or has expired.',
    cure: 'Create a new upload with `POST /api/uploads`.',
  },
  'upload-malformed': {
    status: 400,
    title: 'The headers of the upload are malformed',
    cause: 'A header of the tus protocol is missing or malformed.',
    cure: 'Use a tus 1.0.0 client; `detail` names the header.',
  },
  'upload-version-unsupported': {
    status: 412,
    title: 'The tus version is not supported',
    cause: '`Tus-Resumable` is missing, or names another version.',
    cure: 'Send `Tus-Resumable: 1.0.0`; `Tus-Version` lists the supported versions.',
  },
  'upload-type-unsupported': {
    status: 415,
    title: 'The content type is not that of a chunk',
    cause: 'The tus protocol requires another content type.',
    cure: 'Send `Content-Type: application/offset+octet-stream`.',
  },
  'upload-offset-conflict': {
    status: 409,
    title: 'The offset does not match',
    cause: '`Upload-Offset` is not the offset of the upload, or another request has interrupted this one.',
    cure: 'Get the current offset with `HEAD` and continue from there.',
  },
  'checksum-malformed': {
    status: 400,
    title: 'The checksum is malformed',
    cause: '`Upload-Checksum` names an unsupported algorithm, or its value is not the Base64 of a checksum.',
    cure: 'Send `sha1` or `sha256`, a space and the Base64 of the checksum; `OPTIONS /api/uploads` lists the algorithms.',
  },
  'checksum-mismatch': {
    status: 460,
    title: 'The checksum does not match',
    cause: 'The received bytes do not have the checksum in `Upload-Checksum`. They were discarded.',
    cure: 'Send the chunk again from the same offset.',
  },

  // Problems of the service, which no change of the request prevents.

  'connections-too-many': {
    status: 503,
    title: 'Too many connections are open',
    cause: '`MEDIABUCKET_MAX_CONNECTIONS` or `MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS` is reached.',
    cure: 'Reuse connections, close unused ones, and try again after the seconds in `Retry-After`.',
  },
  'catalog-busy': {
    status: 503,
    title: 'The service is busy',
    cause: 'Another process locked the catalog for longer than the service waits.',
    cure: 'Try again after the seconds in `Retry-After`.',
  },
  'catalog-unavailable': {
    status: 503,
    title: 'The catalog is unavailable',
    cause: 'The database cannot be reached, or it refuses connections.',
    cure: 'Try again after the seconds in `Retry-After`; the operator may have to start the database.',
  },
  overloaded: {
    status: 503,
    title: 'The service is out of resources',
    cause: 'The machine has no file descriptor, memory, thread or process left for the request.',
    cure: 'Try again after the seconds in `Retry-After`; the operator can raise the limits, such as that of open files.',
  },
  'storage-unavailable': {
    status: 503,
    title: 'The stored bytes are unavailable',
    cause:
      'Their directory is missing, for example because its disk is not mounted, or the store cannot be reached.',
    cure: 'Try again after the seconds in `Retry-After`; the operator may have to mount the disk, or to start the store.',
  },
  'issuer-unavailable': {
    status: 503,
    title: 'Tokens of the issuer cannot be verified',
    cause: 'The service cannot request the keys of the issuer.',
    cure: 'Try again after the seconds in `Retry-After`; the operator finds the reason in the log.',
  },
  'scanner-unavailable': {
    status: 503,
    title: 'Uploads cannot be scanned',
    cause:
      'The scanner (`MEDIABUCKET_SCAN`) did not respond within `MEDIABUCKET_SCAN_TIMEOUT`, or other files were scanned for this time. Nothing was stored.',
    cure: 'Try again after the seconds in `Retry-After`; the operator may have to start the scanner.',
  },
  'read-only': {
    status: 503,
    title: 'The service is read-only',
    cause: 'The operator has switched off changes for a while (`MEDIABUCKET_READ_ONLY`).',
    cure: 'Try again later.',
  },
  'shutting-down': {
    status: 503,
    title: 'The service is stopping',
    cause: 'It accepts no further requests.',
    cure: 'Try again after the seconds in `Retry-After`.',
  },
  'not-ready': {
    status: 503,
    title: 'The service is not ready',
    cause: 'It cannot read or store data; `reasons` says why.',
    cure: 'Operators find the cause in the log.',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    cause: 'The log has the error under the `instance` of the response.',
    cure: 'Send the operator the `instance`.',
  },
}
