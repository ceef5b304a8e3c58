import { expect, test } from 'vitest'
import { decode as decodeStart, hasExcerpt, isShownAsText } from '../src/service/text-preview.ts'

const decode = (bytes: ArrayBuffer, cut: boolean, charset = 'utf-8') => decodeStart({ bytes, cut, charset })
const bytes = (...all: number[]) => new Uint8Array(all).buffer

test('a text that is cut within a character loses only that character', () => {
  const whole = new TextEncoder().encode('Möwe ä')
  expect(decode(whole.slice(0, -1).buffer, true)).toBe('Möwe ')
  expect(decode(whole.buffer, false)).toBe('Möwe ä')
})

test('a text that is not UTF-8 is decoded as Windows-1252', () => {
  expect(decode(bytes(0x4d, 0xf6, 0x77, 0x65), false)).toBe('Möwe')
})

const utf16 = (text: string) => Buffer.from(text, 'utf16le')
test.each([
  ['UTF-16, little-endian', utf16('\ufeffMöwe 海鷗\n')],
  ['UTF-16, big-endian', utf16('\ufeffMöwe 海鷗\n').swap16()],
  ['UTF-8', Buffer.from('\ufeffMöwe 海鷗\n')],
])('a text in %s with a byte order mark is readable, whatever charset is declared', (_, encoded) => {
  const { buffer } = new Uint8Array(encoded)
  for (const charset of [undefined, 'utf-8', 'utf-16le', 'klingon'])
    expect(decode(buffer, false, charset)).toBe('Möwe 海鷗\n')
  // Cut within the last character.
  expect(decode(buffer.slice(0, -1), true).trimEnd()).toBe('Möwe 海鷗')
})

test('a declared charset is used if the text has it', () => {
  expect(decode(bytes(0x80), false, 'iso-8859-5')).toBe('\x80')
  expect(decode(bytes(0xbf), false, 'iso-8859-5')).toBe('П')
  expect(decode(new TextEncoder().encode('П').buffer, false, 'us-ascii')).toBe('ÐŸ')
})

test('text types are shown as text; HTML, SVG and similar names are not', () => {
  for (const type of ['text/plain', 'text/markdown', 'text/csv; charset=utf-8', 'application/json'])
    expect([type, isShownAsText(type)]).toEqual([type, true])
  for (const type of ['text/html', 'image/svg+xml', 'application/xml', 'text/plainly', 'video/mp4'])
    expect([type, isShownAsText(type)]).toEqual([type, false])
})

test('G20 tiles show the first lines of texts and code, and of no other files', () => {
  for (const type of ['text/plain', 'text/x-python', 'application/javascript', 'application/ld+json'])
    expect([type, hasExcerpt(type)]).toEqual([type, true])
  for (const type of [
    'image/svg+xml',
    'text/html',
    'application/pdf',
    'application/octet-stream',
    'application/jsonx',
    'video/mp4',
  ])
    expect([type, hasExcerpt(type)]).toEqual([type, false])
})
