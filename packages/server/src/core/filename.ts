const longest = 255
/** What follows a later dot is no extension when it is longer, and need not outlive a cut. */
const longestExtension = 32

/**
 * Controls, line separators, and characters that are invisible or turn the direction of those around them. The two
 * joiners stay: emoji and several scripts are written with them.
 */
const unseen =
  /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\u{AD}\u{180E}\u{200B}\u{2060}-\u{206F}\u{FEFF}\u{FFF9}-\u{FFFB}]/gu

/** A name that is safe to show and to send, null when nothing is left of it (docs/interface.md U8). Never a path. */
export function cleanFilename(raw: string | null | undefined): string | null {
  const last = (raw ?? '').toWellFormed().split(/[/\\]/).at(-1) ?? ''
  const name = shorten(last.replace(unseen, '').normalize('NFC').trim())
  return name === '' || name === '.' || name === '..' ? null : name
}

/** What follows the last dot, in lower case and without the dot; null when there is none or nothing before it. */
export function extensionOf(filename: string): string | null {
  const dot = filename.lastIndexOf('.')
  return dot > 0 && dot < filename.length - 1 ? filename.slice(dot + 1).toLowerCase() : null
}

function shorten(name: string): string {
  if (Buffer.byteLength(name) <= longest) return name
  const tail = name.slice(name.lastIndexOf('.'))
  const kept = tail.startsWith('.') && Buffer.byteLength(tail) <= longestExtension ? tail : ''
  const stem = name.slice(0, name.length - kept.length)
  return firstBytes(stem, longest - Buffer.byteLength(kept)).trimEnd() + kept
}

/** As much of the text as fits, never half a character. */
const firstBytes = (text: string, limit: number): string =>
  text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(limit)).read)
