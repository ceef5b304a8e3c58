import type { ProblemKinds } from './problem-kind.ts'

/** Problems of authentication, authorization and rate limits. */
export const tokenProblems = {
  'authorization-repeated': {
    status: 400,
    title: 'More than one Authorization header',
    cause: 'The request has several Authorization headers, so the token to use is ambiguous.',
    cure: 'Send exactly one `Authorization: Bearer …` header.',
  },
  'token-missing': {
    status: 401,
    title: 'A token is required',
    cause: 'The request has no bearer token in its Authorization header.',
    cure: 'Send `Authorization: Bearer …`. A token in the URL is never accepted. `mediabucket token create` creates a token.',
  },
  'token-malformed': {
    status: 401,
    title: 'The token is malformed',
    cause: 'The value is not a token of this service: its form or its checksum is wrong.',
    cure: 'Copy the whole token again. It begins with `mbkt_` and is 43 characters long.',
  },
  'token-unknown': {
    status: 401,
    title: 'The token is unknown',
    cause: 'The token is well formed, but this service has no such token.',
    cure: 'Check that the token belongs to this service, or create a token with `mediabucket token create`.',
  },
  'token-expired': {
    status: 401,
    title: 'The token has expired',
    cause: 'The expiry time of the token has passed.',
    cure: 'Create a new token with `mediabucket token create`.',
  },
  'token-revoked': {
    status: 401,
    title: 'The token was revoked',
    cause: 'The token was revoked, or its bucket was deleted.',
    cure: 'Create a new token with `mediabucket token create`.',
  },
  'token-refused': {
    status: 401,
    title: 'The token is not accepted',
    cause:
      'The token is no valid token of the issuer whose tokens the service accepts: for example, its signature, its issuer or its audience is another one. The log has the reason.',
    cure: 'Get a new token from the issuer, for the audience of this service.',
  },
  'bucket-unknown': {
    status: 403,
    title: 'The user has no bucket',
    cause: 'The token of the issuer is valid, but its claims name no bucket, or one that does not exist.',
    cure: 'The operator creates the bucket, or allows that buckets are created: `MEDIABUCKET_JWT_CREATE_BUCKETS`.',
  },
  'scope-missing': {
    status: 403,
    title: 'The token lacks a scope',
    cause: 'The token is valid, but lacks a scope that this operation requires, or that it is to grant.',
    cure: 'Use a token with the scope that the response names; `mediabucket token create --scope …` creates one.',
  },
  'managed-token-unknown': {
    status: 404,
    title: 'No such token',
    cause: 'The bucket of the request’s token has no token with this id.',
    cure: 'Get the ids with `GET /api/tokens`. An id begins with `tok_`.',
  },
  'managed-token-inactive': {
    status: 409,
    title: 'The token is no longer valid',
    cause: 'The token has expired or has been revoked, so it cannot be replaced.',
    cure: 'Create a new token with `POST /api/tokens`.',
  },
  'rate-limited': {
    status: 429,
    title: 'Too many requests',
    cause:
      'A rate limit was exceeded: that of the token, of the client’s address, or of invalid tokens from that address. `RateLimit-Policy` names the limit.',
    cure: 'Wait for the seconds in `Retry-After`, then repeat the request. Operators set the limits with `MEDIABUCKET_TOKEN_RATE`, `MEDIABUCKET_ADDRESS_RATE` and `MEDIABUCKET_AUTH_FAILURE_RATE`.',
  },
  'streams-too-many': {
    status: 429,
    title: 'Too many streams of items',
    cause:
      'The token has 16 responses to `GET /api/items` with `Accept: application/x-ndjson` that have not ended. The service sends each only as fast as its client reads.',
    cure: 'Read the streams to their end or close their connections, and repeat the request after the seconds in `Retry-After`.',
  },
} satisfies ProblemKinds
