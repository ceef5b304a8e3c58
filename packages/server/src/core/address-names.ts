import { addressName } from '@mediabucket/client/rules'
import { mediaUrl, type UrlSettings } from './item-urls.ts'

// Names in the URLs of bytes, for people and search engines: `/media/«id»/«name».«ext»`. The service reads only the extension of a name.

/** The parts of an item that its URL has. */
export interface NamedItem {
  readonly id: string
  readonly extension: string | null
  readonly filename: string | null
}

/** A URL of an item's bytes, signed or not, with its name in it; the same URL if the item has no name for addresses. */
export function withName(urls: UrlSettings, url: string, { id, extension, filename }: NamedItem): string {
  const name = filename === null ? '' : addressName(filename)
  const short = mediaUrl(urls, id, extension)
  if (name === '' || !url.startsWith(short)) return url
  const suffix = extension === null ? '' : `.${extension}`
  const base = short.slice(0, short.lastIndexOf('/'))
  return `${base}/${id}/${encodeURIComponent(name)}${suffix}${url.slice(short.length)}`
}

/** The last segment of the short URL that a URL with a name stands for; null if the URL is not one of an item. */
export function shortNameOf(id: string, name: string): string | null {
  if (name === '' || id.includes('.')) return null
  const dot = name.lastIndexOf('.')
  return dot < 0 ? id : `${id}${name.slice(dot)}`
}

/** The target of a request as it would be without the name; the query stays. `hasExtension` as URLs are written. */
export function withoutName(target: string, shortName: string, hasExtension: boolean): string {
  const query = target.indexOf('?')
  const last = hasExtension ? shortName : shortName.replace(/\..*$/s, '')
  return `/media/${last}${query < 0 ? '' : target.slice(query)}`
}
