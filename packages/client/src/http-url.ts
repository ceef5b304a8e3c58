/** A new URL object, or null if the text is not a URL. (Node.js 20 has no `URL.parse`.) */
export function parseUrl(text: string | URL, base?: string): URL | null {
  try {
    return new URL(text, base)
  } catch {
    return null
  }
}

/** An http or https URL without credentials; throws a `TypeError` that does not contain the URL, because it may contain a secret. */
export function httpUrl(text: string | URL, name: string): URL {
  const url = parseUrl(text)
  if (!url || !/^https?:$/.test(url.protocol))
    throw new TypeError(`${name} must be an absolute http or https URL`)
  if (url.username || url.password) throw new TypeError(`${name} must not contain a user name or password`)
  url.hash = ''
  return url
}
