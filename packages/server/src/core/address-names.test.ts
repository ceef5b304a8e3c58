import { addressName } from '@mediabucket/client/rules'
import { expect, test } from 'vitest'
import { shortNameOf, withName, withoutName } from './address-names.ts'

test.each([
  ['IMG 2034 (1).JPG', 'IMG-2034-1'],
  ['Sommer am See – Tag 1.jpeg', 'Sommer-am-See-Tag-1'],
  ['海の写真.png', '海の写真'],
  ['हिन्दी.png', 'हिन्दी'],
  ['e\u0301te\u0301.webp', 'été'],
  ['a.tar.gz', 'a-tar'],
  ['.htaccess', 'htaccess'],
  ['../../etc/passwd', ''],
  ['x\r\nSet-Cookie: a=b.png', 'x-Set-Cookie-a-b'],
  ['<script>"\'%00>.png', 'script-00'],
  ['🙂.png', ''],
  ['…', ''],
  ['a'.repeat(300), 'a'.repeat(80)],
  ['\ud800x.png', 'x'],
])('B13 %o in an address is %o', (filename, expected) => {
  expect(addressName(filename)).toBe(expected)
  // It can be encoded, and is in one segment of the path.
  expect(encodeURIComponent(addressName(filename))).not.toMatch(/[/?#\s]/)
})

const urls = { baseUrl: 'https://example.com/files', extensions: true }

test('B13 a URL gets the name of its item, and the query stays', () => {
  const item = { id: 'abc', extension: 'jpg', filename: 'Tag 1.JPEG' }
  const short = 'https://example.com/files/media/abc.jpg'
  expect(withName(urls, `${short}?variant=thumb`, item)).toBe(
    'https://example.com/files/media/abc/Tag-1.jpg?variant=thumb',
  )
  for (const filename of [null, '🙂']) expect(withName(urls, short, { ...item, filename })).toBe(short)
  const plain = { id: 'abc', extension: null, filename: 'Makefile.am' }
  expect(withName(urls, 'https://example.com/files/media/abc', plain)).toBe(
    'https://example.com/files/media/abc/Makefile',
  )
  expect(withName({ ...urls, extensions: false }, 'https://example.com/files/media/abc', item)).toBe(
    'https://example.com/files/media/abc/Tag-1.jpg',
  )
})

test('B13 a URL with a name stands for the short one', () => {
  expect(shortNameOf('abc', 'any name.jpg')).toBe('abc.jpg')
  expect(shortNameOf('abc', 'any')).toBe('abc')
  expect(shortNameOf('abc', '')).toBeNull()
  expect(shortNameOf('abc.jpg', 'any')).toBeNull()
  expect(withoutName('/media/abc/x.jpg?expires=1&key=k', 'abc.jpg', true)).toBe(
    '/media/abc.jpg?expires=1&key=k',
  )
  expect(withoutName('/media/abc/x.jpg', 'abc.jpg', false)).toBe('/media/abc')
})
