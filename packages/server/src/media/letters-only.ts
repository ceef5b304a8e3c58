import { isUtf8 } from 'node:buffer'

/** Binary formats whose whole signature is two or three letters, which a text can begin with too ("BMW", "MZ …"). */
const signedByLetters: ReadonlySet<string> = new Set([
  'image/bmp',
  'audio/x-musepack',
  'application/x-bzip2',
  'application/x-msdownload',
  'application/x-shockwave-flash',
])

/** Whether a type was read from a few letters at the start of what is plainly text: files of these types are not text. */
export function isLettersOnly(mime: string, head: Uint8Array): boolean {
  return signedByLetters.has(mime) && isText(head)
}

function isText(head: Uint8Array): boolean {
  if (head.some((byte) => byte < 0x20 && !whitespace.has(byte))) return false
  // The head may end within a character of up to four bytes.
  return [0, 1, 2, 3].some((cut) => isUtf8(head.subarray(0, head.byteLength - cut)))
}

/** Tab, line feed, form feed, carriage return. */
const whitespace: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0c, 0x0d])
