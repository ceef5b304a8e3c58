import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cleanFilename, cleanPath } from './name-rules.ts'

test.each([
  ['photo.jpg', 'photo.jpg'],
  ['C:\\Users\\me\\photo.jpg', 'photo.jpg'],
  ['/etc/passwd', 'passwd'],
  ['../../photo.jpg', 'photo.jpg'],
  ['a/b\\c/d.txt', 'd.txt'],
  ['..\\/../.htaccess', '.htaccess'],
  ['  two words.txt  ', 'two words.txt'],
  ['Ünïcödé 写真 📷.png', 'Ünïcödé 写真 📷.png'],
  ['e\u0301.txt', 'é.txt'],
  ['a\0b\r\nc\td\u007fe\u0085f.txt', 'abcdef.txt'],
  ['invoice\u202Egpj.exe', 'invoicegpj.exe'],
  ['\u2066a\u2069\u200Fb\u061C.txt', 'ab.txt'],
  ['a\u200Bb\u2060c\uFEFFd\u00ADe.txt', 'abcde.txt'],
  ['👩\u200D🚀 می\u200Cخواهم.txt', '👩\u200D🚀 می\u200Cخواهم.txt'],
  ['a\u2028b\u2029c', 'abc'],
  ['\uD83Da.txt', '\uFFFDa.txt'],
  ['a\uD83D\u200B\uDE00', 'a\uFFFD\uFFFD'],
  ['...', '...'],
  ['a..b', 'a..b'],
  ['~ !#$%&()+,;=@[]^`{}|."', '~ !#$%&()+,;=@[]^`{}|."'],
  ['a ', 'a'],
])('U8 the file name %j is stored as %j', (raw, name) => {
  expect(cleanFilename(raw)).toBe(name)
})

test.each([null, undefined, '', '.', '..', ' .. ', 'a/', 'a/..', 'a\\.', '\0', '\u200B', '.\u202E.', ' \t '])(
  'U8 %j is not a file name',
  (raw) => {
    expect(cleanFilename(raw)).toBeNull()
  },
)

test.each([
  ['summer/day 1/a.jpg', 'summer/day 1/a.jpg'],
  ['./a.jpg', 'a.jpg'],
  ['/etc/passwd', 'etc/passwd'],
  ['../../a/.././b/a.jpg', 'a/b/a.jpg'],
  ['a//b/\0/c', 'a/b/c'],
  ['C:\\x\\a/b\\c.txt', 'a/c.txt'],
  ['e\u0301/\u202Ee\u0301 ', 'é/é'],
  ['a\u{10FFFF}/b', 'a/b'],
  [`${'a'.repeat(300)}/b`, `${'a'.repeat(255)}/b`],
  [`${'a/'.repeat(511)}ab`, `${'a/'.repeat(511)}ab`],
])('U15 the path %j is stored as %j', (raw, path) => {
  expect(cleanPath(raw)).toBe(path)
  expect(cleanPath(`./${path}`)).toBe(path)
})

test.each([null, undefined, '', 'a.jpg', '/', 'a/', 'a/..', '../', 'null', `${'a/'.repeat(511)}abc`])(
  'U15 %j is no path',
  (raw) => {
    expect(cleanPath(raw)).toBeNull()
  },
)

test('U8 a long name is cut before its extension, between two characters', () => {
  expect(cleanFilename(`${'a'.repeat(300)}.jpeg`)).toBe(`${'a'.repeat(250)}.jpeg`)
  expect(cleanFilename(`${'a'.repeat(255)}`)).toBe('a'.repeat(255))
  expect(cleanFilename(`${'é'.repeat(200)}.txt`)).toBe(`${'é'.repeat(125)}.txt`)
  expect(cleanFilename('📷'.repeat(100))).toBe('📷'.repeat(63))
  expect(cleanFilename(`a.${'b'.repeat(300)}`)).toBe(`a.${'b'.repeat(253)}`)
  expect(cleanFilename(`${'a'.repeat(245)}      ${'b'.repeat(9)}.txt`)).toBe(`${'a'.repeat(245)}.txt`)
})

test('U8 a name of printable ASCII characters is cleaned like all others', () => {
  const characters = fc.oneof(
    fc.constantFrom('.', ' ', '-', '~', '!', '[', ']'),
    fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
  )
  fc.assert(
    fc.property(fc.string({ unit: characters, maxLength: 270 }), (name) => {
      const raw = name.replace(/[/\\]/g, '')
      // An invisible character is removed, and keeps the name from being taken as it is.
      expect(cleanFilename(raw)).toBe(cleanFilename(`\u200B${raw}`))
    }),
  )
})

const nasty = fc.constantFrom(
  ...['/', '\\', '.', '..', '\0', '\r\n', '\u202E', '\u2067', '\u200B', '\u2028', '\uFEFF', '\u0301', ' '],
)
const names = fc
  .array(fc.oneof(nasty, fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), fc.string()), {
    maxLength: 60,
  })
  .map((parts) => parts.join(''))

test('U8 a cleaned name has no path separators and no control or direction characters', () => {
  fc.assert(
    fc.property(names, (raw) => {
      const name = cleanFilename(raw)
      if (name === null) return
      expect(name).not.toMatch(/[/\\]/)
      expect(name).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u)
      expect(name).not.toMatch(/[\u200B\u2060\uFEFF]/u)
      expect(['', '.', '..']).not.toContain(name)
      expect(name.isWellFormed()).toBe(true)
      expect(name.normalize('NFC')).toBe(name)
      expect(name.trim()).toBe(name)
      expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255)
      expect(cleanFilename(name)).toBe(name)
    }),
    { numRuns: 2000 },
  )
})

test('U8 an ordinary name is not changed', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[\w-][\w .()-]{0,200}[\w-]\.[a-z0-9]{1,5}$/), (name) => {
      expect(cleanFilename(name)).toBe(name)
    }),
  )
})
