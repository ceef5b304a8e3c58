import type { Media } from '@mediabucket/client'

/** Bytes of the longest name, so that a number and the names of all file systems fit. */
const longestName = 240

/**
 * The name of an item as the name of one file: without separators, control characters, and characters that Windows does not
 * allow. A name that begins with a dot would be hidden, or configure a program, so it gets another first character.
 */
export function localName({ id, url, filename }: Pick<Media, 'id' | 'url' | 'filename'>): string {
  return localSegment(filename ?? lastSegment(url) ?? id) ?? id
}

/** The path of an item below a directory; its name, if it has no path. */
export const localPath = (item: Media): string =>
  item.path == null
    ? localName(item)
    : item.path
        .split('/')
        .map((segment) => localSegment(segment) ?? '_')
        .join('/')

function localSegment(wanted: string): string | null {
  const name = wanted
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}/\\:*?"<>|]/gu, '_')
    .replace(/^\./, '_')
    .replace(/[. ]+$/, '_')
    .replace(/^(con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[\d¹²³])(?=[ .]*(?:\.|$))/i, '_$1')
  return name === '' ? null : cut(name)
}

function lastSegment(url: string): string | null {
  return URL.parse(url)?.pathname.split('/').at(-1) || null
}

/** Shortens the part before the extension. */
function cut(name: string): string {
  const { stem, extension } = split(name)
  const chars = [...stem]
  while (Buffer.byteLength(chars.join('') + extension) > longestName && chars.length > 1) chars.pop()
  return chars.join('') + extension
}

/** `photo-2.jpg` */
export function numbered(name: string, number: number): string {
  const { stem, extension } = split(name)
  return `${stem}-${number}${extension}`
}

function split(name: string): { stem: string; extension: string } {
  const [extension = ''] = /(?<=[^/])\.[^./]{1,32}$/.exec(name) ?? []
  return { stem: name.slice(0, name.length - extension.length), extension }
}
