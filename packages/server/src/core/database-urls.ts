/** Scheme and user, hosts, and the rest. A password may contain @. */
const parts = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/i

/**
 * Splits the URL of a PostgreSQL database, which may name several servers as in libpq (`host1:port1,host2:port2`), into one URL for each
 * of them. Returns null if the text is no such URL.
 */
export function splitDatabaseUrl(text: string): URL[] | null {
  const [, start = '', hosts = '', rest = ''] = parts.exec(text) ?? []
  const urls = hosts.split(',').map((host) => `${start}${host}${rest}`)
  return start !== '' && urls.every((url) => URL.canParse(url)) ? urls.map((url) => new URL(url)) : null
}

/** The same URL without its password. */
export function withoutPassword(text: string): string {
  const urls = splitDatabaseUrl(text) ?? []
  const [{ protocol, username, pathname, searchParams } = new URL('postgres://')] = urls
  searchParams.delete('password')
  const user = username === '' ? '' : `${username}@`
  const query = searchParams.size === 0 ? '' : `?${searchParams}`
  return `${protocol}//${user}${urls.map(({ host }) => host).join(',')}${pathname}${query}`
}
