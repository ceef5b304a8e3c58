/** Throws a `TypeError` without the token, which the error of `Headers` would contain. */
export function requireToken(token: unknown): asserts token is string {
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token))
    throw new TypeError('token must be a bearer token: visible ASCII characters without spaces')
}
