import type { ProblemKinds } from './problem-kind.ts'

/** Problems of the request itself: HTTP, path, method, headers, body. */
export const requestProblems = {
  'request-malformed': {
    status: 400,
    title: 'The request is malformed',
    cause: 'The request is not valid HTTP, or its path cannot be decoded.',
    cure: 'Check the percent-encoding of the URL, the headers and the length of the body.',
  },
  'page-malformed': {
    status: 400,
    title: 'The page number is malformed',
    cause: 'The query parameter `page` is not a decimal integer, or is repeated.',
    cure: 'Send `page` once, as an integer from 1 up without sign or leading zero, or leave it out for page 1.',
  },
  'parameter-malformed': {
    status: 400,
    title: 'A query parameter is malformed',
    cause: 'A query parameter has a value that it does not accept, or is repeated. `errors` lists them.',
    cure: 'Send each parameter once, with a value that `errors` states, or leave it out.',
  },
  'cursor-malformed': {
    status: 400,
    title: 'The cursor is not valid for this list',
    cause:
      'The query parameter `after` is not a cursor of this list: it was changed, or it belongs to another bucket, another order or other filters, or to the data before a restore.',
    cure: 'Send the `next_cursor` of the previous response unchanged, with the same parameters, or start again without `after`.',
  },
  'json-malformed': {
    status: 400,
    title: 'The JSON body is not accepted',
    cause:
      'The body is not a JSON object in UTF-8, or members are missing, unknown or have other values than they accept. `errors` lists them.',
    cure: 'Send a JSON object with the members that `/docs` describes.',
  },
  'route-unknown': {
    status: 404,
    title: 'The path does not exist',
    cause: 'The service has no such path.',
    cure: 'Check the path: uploads and listings are at `/api/media`, bytes at `/media/…`.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'The method is not allowed',
    cause: 'The path exists, but does not support this method.',
    cure: 'Use one of the methods in the `Allow` header of the response.',
  },
  'request-timeout': {
    status: 408,
    title: 'The request took too long to arrive',
    cause: 'The headers of the request, or its JSON body, were not complete within the time limit.',
    cure: 'Try again on a new connection.',
  },
  'body-too-large': {
    status: 413,
    title: 'The body is too large',
    cause: 'The operation does not accept a body of this size, or a field of a form is too large.',
    cure: 'Send a smaller body or none, or upload files with `POST /api/media`.',
  },
  'content-type-unsupported': {
    status: 415,
    title: 'The content type of the body is not supported',
    cause:
      'The operation takes a JSON body, and the `Content-Type` of the request is another one or missing.',
    cure: 'Send the `Content-Type` that `detail` names.',
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
    cause:
      'No operation of the service uses the method of the request. Examples are `CONNECT` and the methods of RTSP.',
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
    cause: 'The request uses a version other than HTTP/1.1 or HTTP/1.0, or another protocol.',
    cure: 'Use HTTP/1.1. For HTTP/2, put a reverse proxy in front of the service.',
  },
} satisfies ProblemKinds
