import type { FaultCode } from '../core/faults.ts'

/** What all problems with one code share; titles, causes and cures are shown at `/problems/{code}`. */
export interface ProblemKind {
  readonly status: number
  readonly title: string
  readonly cause: string
  readonly cure: string
}

/** Problems of authentication, authorization and rate limits: a part of `problemKinds`. */
export const accessProblemKinds = {
  'authorization-repeated': {
    status: 400,
    title: 'More than one Authorization header',
    cause: 'The request has several Authorization headers.',
    cure: 'Send exactly one `Authorization: Bearer …` header.',
  },
  'token-missing': {
    status: 401,
    title: 'A token is required',
    cause: 'The request has no bearer token.',
    cure: 'Send `Authorization: Bearer …`. A token in the URL is never accepted. `mediabucket token create --bucket NAME` creates one of a bucket, `--service` one of the service.',
  },
  'token-malformed': {
    status: 401,
    title: 'The token is malformed',
    cause: 'Its form or its checksum is wrong.',
    cure: 'Copy the whole token again. It begins with `mbkt_`, a service token with `mbks_`, and is 43 characters long.',
  },
  'token-unknown': {
    status: 401,
    title: 'The token is unknown',
    cause: 'No such token exists.',
    cure: 'Check that the token belongs to this service, or create a token with `mediabucket token create`.',
  },
  'token-expired': {
    status: 401,
    title: 'The token has expired',
    cause: 'Its expiry time has passed.',
    cure: 'Create a new token with `mediabucket token create`.',
  },
  'token-revoked': {
    status: 401,
    title: 'The token was revoked',
    cause: 'It was revoked, or its bucket was deleted.',
    cure: 'Create a new token with `mediabucket token create`.',
  },
  'token-refused': {
    status: 401,
    title: 'The token is not accepted',
    cause:
      'It is no valid one of the issuer of this service, for example because of its signature or its audience. The log has the reason.',
    cure: 'Get a new token from the issuer, for the audience of this service.',
  },
  'bucket-missing': {
    status: 403,
    title: 'The user has no bucket',
    cause: 'The claims of the token name no bucket, or one that does not exist.',
    cure: 'The operator creates the bucket, or allows that buckets are created: `MEDIABUCKET_JWT_CREATE_BUCKETS`.',
  },
  'bucket-required': {
    status: 400,
    title: 'The request names no bucket',
    cause: 'A service token belongs to no bucket.',
    cure: 'Send the header `Mediabucket-Bucket` with the name of the bucket.',
  },
  'bucket-forbidden': {
    status: 403,
    title: 'The token belongs to another bucket',
    cause: '`Mediabucket-Bucket` names another bucket than that of the token.',
    cure: 'Leave the header out, or use a token of the bucket that it names.',
  },
  'bucket-unknown': {
    status: 404,
    title: 'The bucket does not exist',
    cause: 'No bucket has this name, or it was deleted during the request.',
    cure: 'Check the name; `mediabucket bucket list` lists the buckets.',
  },
  'scope-missing': {
    status: 403,
    title: 'The token lacks a scope',
    cause: 'The operation requires it, or the token is to grant it.',
    cure: 'Use a token with the scope that the response names; `mediabucket token create --scope …` creates one.',
  },
  'managed-token-unknown': {
    status: 404,
    title: 'No such token',
    cause: 'The bucket has no token with this id.',
    cure: 'Get the ids with `GET /api/tokens`. An id begins with `tok_`.',
  },
  'managed-token-inactive': {
    status: 409,
    title: 'The token cannot be replaced',
    cause: 'The token has expired, has been revoked or has been replaced before.',
    cure: 'Replace its successor, which `GET /api/tokens` lists, or create a new token with `POST /api/tokens`.',
  },
  'key-unknown': {
    status: 404,
    title: 'No such key',
    cause: 'The service has no key that signs URLs with this id.',
    cure: 'Get the ids with `GET /api/keys`, or with `mediabucket keys list`.',
  },
  'webhook-unknown': {
    status: 404,
    title: 'No such webhook',
    cause: 'The bucket has no webhook with this id.',
    cure: 'Get the ids with `GET /api/webhooks`. An id begins with `wh_`.',
  },
  'webhook-delivery-unknown': {
    status: 404,
    title: 'No such delivery',
    cause: 'None of the last 100 deliveries has this number, or its changes are no longer known.',
    cure: 'Get the numbers with `GET /api/webhooks/…/deliveries`. List the items to find what has changed.',
  },
  'webhooks-too-many': {
    status: 409,
    title: 'The bucket has too many webhooks',
    cause: 'A bucket has at most 10 webhooks.',
    cure: 'Delete a webhook with `DELETE /api/webhooks/…`.',
  },
  'webhook-deliveries-too-many': {
    status: 429,
    title: 'Too many deliveries at once',
    cause: 'Three tests or repeated deliveries of the bucket wait for their receivers.',
    cure: 'Repeat the request after the seconds in `Retry-After`.',
  },
  'rate-limited': {
    status: 429,
    title: 'Too many requests',
    cause: 'A rate limit was exceeded. `RateLimit-Policy` names it.',
    cure: 'Repeat the request after the seconds in `Retry-After`.',
  },
  'streams-too-many': {
    status: 429,
    title: 'Too many streams',
    cause:
      'The token has 16 streams of items, or `MEDIABUCKET_MAX_STREAMS_PER_TOKEN` open requests for changes, or its address `MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS` of these.',
    cure: 'Read the streams of items to their end, or close connections, and repeat the request after the seconds in `Retry-After`.',
  },
} as const satisfies Partial<Record<FaultCode, ProblemKind>>
