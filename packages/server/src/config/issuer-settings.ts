import {
  algorithms,
  bucketPattern,
  claimName,
  clockSkew,
  countOrNone,
  issuerUrl,
  onOrOff,
  queryParameters,
  scopeNames,
  sizeOrNone,
  textOrNone,
} from './readers.ts'
import { setting } from './setting.ts'

/** The settings of an issuer, whose users are accepted besides tokens of the service. */
export const issuerSettings = {
  MEDIABUCKET_JWT_ISSUER: setting(
    '',
    issuerUrl,
    'The issuer of JWTs that are accepted besides tokens of the service: the users of an app. Equals their claim `iss`. The keys are found by OpenID Connect Discovery. None by default.',
  ),
  MEDIABUCKET_JWT_JWKS_URL: setting(
    '',
    issuerUrl,
    'The URL of the issuer’s keys (JSON Web Key Set). By default the discovery document names it.',
  ),
  MEDIABUCKET_JWT_AUDIENCE: setting(
    '',
    textOrNone('a text without control characters'),
    'The audience of accepted JWTs, a value of their claim `aud`. Required with an issuer, because the issuer also signs tokens for other services.',
  ),
  MEDIABUCKET_JWT_ALGORITHMS: setting(
    'RS256, ES256, EdDSA',
    algorithms,
    'The accepted signature algorithms of JWTs. Algorithms with a shared secret (`HS256`) are never accepted.',
  ),
  MEDIABUCKET_JWT_CLOCK_SKEW: setting(
    '30s',
    clockSkew,
    'The accepted difference between the clocks of the issuer and of the service.',
  ),
  MEDIABUCKET_JWT_BUCKET: setting(
    'user-{sub}',
    bucketPattern,
    'The name of the bucket of a JWT’s user, with the value of a claim. Different values never name the same bucket.',
  ),
  MEDIABUCKET_JWT_CREATE_BUCKETS: setting(
    'off',
    onOrOff,
    'Whether the first request of a user creates the bucket. With `off`, the operator creates it.',
  ),
  MEDIABUCKET_JWT_BUCKET_MAX_ITEMS: setting(
    'none',
    countOrNone,
    'The maximum number of items in a bucket that is created so.',
  ),
  MEDIABUCKET_JWT_BUCKET_MAX_BYTES: setting(
    'none',
    sizeOrNone,
    'The maximum size of all items together in a bucket that is created so.',
  ),
  MEDIABUCKET_JWT_BUCKET_PRIVATE: setting(
    'off',
    onOrOff,
    'Whether a bucket that is created so is private: its files need a token of the bucket or a signed URL.',
  ),
  MEDIABUCKET_JWT_SCOPES: setting(
    'scope',
    claimName,
    'The claim of JWTs with the scopes: a text with spaces, or an array. Other scopes than those of the service are ignored.',
  ),
  MEDIABUCKET_JWT_DEFAULT_SCOPES: setting(
    '',
    scopeNames,
    'The scopes of JWTs that name none of the service. Set it if the issuer cannot add scopes. None by default.',
  ),
  MEDIABUCKET_JWT_MANAGE_TOKENS: setting(
    'off',
    onOrOff,
    'Whether JWTs may have the scope `tokens:manage`, with which users create tokens that remain valid after their JWT expires.',
  ),
  MEDIABUCKET_OIDC_CLIENT_ID: setting(
    '',
    textOrNone('a text without control characters'),
    'The id of the gallery as a public client of the issuer. With it, people sign in at the gallery with the issuer; its redirect URI is the URL of the gallery. None by default.',
  ),
  MEDIABUCKET_OIDC_NAME: setting(
    '',
    textOrNone('a text without control characters'),
    'The name of the issuer on the button of the gallery. By default its host name.',
  ),
  MEDIABUCKET_OIDC_SCOPES: setting(
    'openid media:read media:write media:delete',
    textOrNone('scopes separated by spaces'),
    'The scopes that the gallery requests. Add `offline_access` if the issuer requires it for refresh tokens, without which people sign in again when their JWT expires.',
  ),
  MEDIABUCKET_OIDC_PARAMETERS: setting(
    '',
    queryParameters,
    'Further parameters of the authorization request, with which issuers select the audience of the JWT: `resource=…` (RFC 8707), or `audience=…` for Auth0.',
  ),
} as const
