import { headerValue, mutate } from './hostile.ts'
import type { Random } from './random.ts'
import { responseTimeout, type Target } from './target.ts'

const joiners = [' ', '  ', '\t', '', ', ', '\u00a0', ' Bearer ', '='] as const
const schemes = ['Bearer', 'bearer', 'BEARER', 'Basic', 'Token', 'Bearer:', '', 'Digest'] as const

/** Changes that leave a token as it is, in the sense of A1 and A4: the case of the scheme, and spaces before the token. */
const isSame = (value: string, token: string): boolean =>
  new RegExp(`^[ \\t]*bearer +${token}[ \\t]*$`, 'i').test(value) && value.includes(token)

function alteredToken(random: Random, token: string): string {
  const altered = random.pick([
    token.slice(0, random.below(token.length)),
    `${token}${headerValue(random)}`,
    token.toUpperCase(),
    token.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a')),
    [...token].reverse().join(''),
    mutate(random, Buffer.from(token)).toString('latin1'),
    `${token}.${token}.${token}`,
    headerValue(random),
  ])
  return altered.replace(/[\r\n\0]/g, '')
}

/** Altered tokens are refused; a request with one changes nothing. */
export async function fuzzTokens({ random, send, otherToken }: Target): Promise<void> {
  const value = `${random.pick(schemes)}${random.pick(joiners)}${alteredToken(random, otherToken)}`
  const method = random.pick([
    'GET /api/media',
    'GET /api/token',
    'GET /api/items',
    'POST /api/media',
    'GET /api/tokens',
  ])
  const response = await send(
    Buffer.from(
      `${method} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: ${value}\r\nContent-Length: 0\r\n\r\n`,
      'latin1',
    ),
    undefined,
    responseTimeout,
  )
  if (response === null) throw new Error(`no response to ${value}`)
  const isRefused = [400, 401, 431].includes(response.status)
  if (!isRefused && !isSame(value, otherToken))
    throw new Error(`${response.status} for ${JSON.stringify(value)}`)
}

/** A request that is repeated with its key stores one item, whatever the key is; other content with the key stores none. */
export async function fuzzKeys({ random, send, otherToken }: Target): Promise<void> {
  const key = `${random.oneIn(2) ? '"' : ''}${headerValue(random)}${random.below(2 ** 31)}${random.oneIn(2) ? '"' : ''}`
  const store = (body: string) =>
    send(
      Buffer.from(
        `POST /api/media HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${otherToken}\r\nIdempotency-Key: ${key}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        'latin1',
      ),
      undefined,
      responseTimeout,
    )
  const idOf = (body: string | undefined) => /"id":"(\w+)"/.exec(body ?? '')?.[1]
  const first = await store('one')
  const [again, different] = [await store('one'), await store('two')]
  const statuses = [first?.status, again?.status, different?.status]
  if (first?.status === 201) {
    if (again?.status !== 201 || idOf(first.body) !== idOf(again.body))
      throw new Error(`the same request with the key ${JSON.stringify(key)} got ${statuses}`)
    if (different?.status !== 422)
      throw new Error(`another request with the key ${JSON.stringify(key)} got ${statuses}`)
  } else if (statuses.some((status) => status !== 400 && status !== 431))
    throw new Error(`the key ${JSON.stringify(key)} got ${statuses}`)
}

const claimNames = ['sub', 'aud', 'iss', 'exp', 'nbf', 'iat', 'scope', 'jti', '__proto__', 'x'] as const
const claimValues = [
  ...[null, true, 0, -1, 1e308, 1.5, '', ' ', '../x', 'a'.repeat(300), '\u0000', '𝒳', 'media:read', [], {}],
  ...[
    ['media:read', 5],
    { a: 1 },
    '9'.repeat(20),
    Number.MAX_SAFE_INTEGER,
    '__proto__',
    'default',
    'hostile',
  ],
] as const satisfies readonly [unknown, ...unknown[]]
const headerMembers = [
  ...[
    { alg: 'none' },
    { alg: 'HS256' },
    { alg: 'RS512' },
    { alg: ['RS256'] },
    { kid: '../x' },
    { kid: null },
  ],
  ...[
    { typ: 'JOSE' },
    { crit: ['x'], x: 1 },
    { b64: false, crit: ['b64'] },
    { zip: 'DEF' },
    { jwk: {} },
    { jku: 'http://x' },
  ],
] as const satisfies readonly [object, ...object[]]

const signatureOf = (jwt: string) => Buffer.from(jwt.slice(jwt.lastIndexOf('.') + 1), 'base64url')

/** The last character of a signature has spare bits, so another one can mean the same signature. */
const isSameJwt = (token: string, signed: string): boolean =>
  token.slice(0, -1) === signed.slice(0, -1) && signatureOf(token).equals(signatureOf(signed))

/** Altered JWTs are refused, and hostile claims with a valid signature cause no error of the service. */
export async function fuzzJwts({ random, send, issuer }: Target): Promise<void> {
  const claims = Object.fromEntries(
    Array.from({ length: random.below(4) }, () => [random.pick(claimNames), random.pick(claimValues)]),
  )
  const signed = await issuer.sign(
    { sub: 'fuzz', ...claims },
    random.oneIn(3) ? random.pick<object>(headerMembers) : {},
  )
  const parts = signed.split('.')
  const altered = random.pick([
    signed,
    mutate(random, Buffer.from(signed)).toString('latin1'),
    parts.with(random.below(3), headerValue(random)).join('.'),
    parts.with(1, Buffer.from(JSON.stringify({ ...claims, sub: 'admin' })).toString('base64url')).join('.'),
    parts.with(2, '').join('.'),
    parts.toSpliced(random.below(3), 1).join('.'),
    [...parts, ...parts].join('.'),
  ])
  const token = altered.replace(/[\r\n\0]/g, '')
  const response = await send(
    Buffer.from(
      `GET /api/token HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n\r\n`,
      'latin1',
    ),
    undefined,
    responseTimeout,
  )
  if (response === null) throw new Error(`no response to ${token}`)
  const isAltered = !isSameJwt(token.trim(), signed)
  if (isAltered && ![400, 401, 431].includes(response.status))
    throw new Error(`${response.status} for the altered JWT ${token} of ${signed}`)
}
