const longest = 255
/** Longer text after the last dot is not an extension: it can be cut off. */
const longestExtension = 32

/**
 * Control characters, line separators, invisible characters, and characters that change the writing direction. The two
 * joiners are not removed, because emoji and several scripts need them.
 */
const unseen =
  /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\u{AD}\u{180E}\u{200B}\u{2060}-\u{206F}\u{FEFF}\u{FFF9}-\u{FFFB}]/gu

/** 1 to 255 printable ASCII characters without slashes and backslashes, and without a space at either end: nearly all names. */
const plainName = /^[!-.0-[\]-~](?:[ -.0-[\]-~]{0,253}[!-.0-[\]-~])?$/

/** A name that is safe to display and to send, never a path; null if nothing remains (docs/interface.md U8). */
export function cleanFilename(raw: string | null | undefined): string | null {
  if (raw != null && plainName.test(raw)) return raw === '.' || raw === '..' ? null : raw
  const last = (raw ?? '').toWellFormed().split(/[/\\]/).at(-1) ?? ''
  const name = shorten(last.replace(unseen, '').normalize('NFC').trim())
  return name === '' || name === '.' || name === '..' ? null : name
}

/** The text after the last dot, in lower case; null if there is no dot, or no text before it or after it. */
export function extensionOf(filename: string): string | null {
  const dot = filename.lastIndexOf('.')
  return dot > 0 && dot < filename.length - 1 ? filename.slice(dot + 1).toLowerCase() : null
}

function shorten(name: string): string {
  if (Buffer.byteLength(name) <= longest) return name
  const tail = name.slice(name.lastIndexOf('.'))
  const extension = tail.startsWith('.') && Buffer.byteLength(tail) <= longestExtension ? tail : ''
  const stem = name.slice(0, name.length - extension.length)
  return firstBytes(stem, longest - Buffer.byteLength(extension)).trimEnd() + extension
}

/** The longest start of the text that fits into `limit` bytes of UTF-8 without splitting a character. */
const firstBytes = (text: string, limit: number): string =>
  text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(limit)).read)
