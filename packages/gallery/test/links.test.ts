import type { Media } from '@mediabucket/client'
import { expect, test, vi } from 'vitest'
import { uniqueNames } from '../src/selection/download-zip.ts'
import { linkTexts } from '../src/selection/link-texts.ts'

const media: Media = {
  id: '2v8d',
  url: 'https://media.example/media/2v8d.jpg',
  filename: 'a [b] "c" <d>.jpg',
  content_type: 'image/jpeg',
  size: 1,
  sha256: '00',
  created_at: '2026-05-01T00:00:00Z',
  width: 40,
  height: 30,
}

test('the link of a picture as Markdown and HTML, whatever its name contains', () => {
  expect(linkTexts.markdown(media, media.url)).toBe(
    `![a &#91;b&#93; &#34;c&#34; &#60;d&#62;.jpg](${media.url})`,
  )
  expect(linkTexts.html(media, media.url)).toBe(
    `<img src="${media.url}" alt="a [b] &quot;c&quot; &lt;d&gt;.jpg" width="40" height="30">`,
  )
})

test('the link of a picture has its alternative text if it has one', () => {
  const described = { ...media, alt_text: 'Ships in\n"a" port' }
  expect(linkTexts.markdown(described, described.url)).toBe(`![Ships in &#34;a&#34; port](${media.url})`)
  expect(linkTexts.html(described, described.url)).toContain('alt="Ships in &quot;a&quot; port"')
})

test('the link of another file has its name as text, or its URL if it has none', () => {
  const other = { ...media, content_type: 'application/pdf', filename: null }
  expect(linkTexts.markdown(other, other.url)).toBe(
    `[https&#58;//media.example/media/2v8d.jpg](${media.url})`,
  )
  expect(linkTexts.html(other, other.url)).toBe(`<a href="${media.url}">${media.url}</a>`)
})

test.each([
  ['[x](javascript:alert(1)).txt', '&#91;x&#93;&#40;javascript&#58;alert&#40;1&#41;&#41;.txt'],
  ['![a](x)', '&#33;&#91;a&#93;&#40;x&#41;'],
  ['a\\](x', 'a&#92;&#93;&#40;x'],
  ['&#91;<b>`', '&#38;&#35;91&#59;&#60;b&#62;&#96;'],
  ['www.example.com', '&#119;&#119;&#119;.example.com'],
  ['IMG-1.jpg', 'IMG-1.jpg'],
])('the name %j is text in Markdown, in every parser', (filename, text) => {
  const other = { ...media, content_type: 'text/plain', filename }
  expect(linkTexts.markdown(other, other.url)).toBe(`[${text}](${media.url})`)
})

test.each([
  ['C:', 'C_'],
  ['C:\\a.txt', 'C__a.txt'],
  ['a.txt:stream', 'a.txt_stream'],
  ['CON', 'CON_'],
  ['con.txt', 'con_.txt'],
  ['Aux .tar.gz', 'Aux_ .tar.gz'],
  ['COM1', 'COM1_'],
  ['LPT².log', 'LPT²_.log'],
  ['CONIN$', 'CONIN$_'],
  ['console.txt', 'console.txt'],
  ['a?*"<>|.txt', 'a______.txt'],
  ['a. . ', 'a'],
  ['...', '_'],
])('the name %j in an archive is %j', (name, stored) => {
  expect(uniqueNames([name])).toEqual([stored])
})

test('names in an archive are unique without regard to case, and contain no directories', () => {
  expect(uniqueNames(['a.jpg', 'A.jpg', 'a.jpg', '../b', '..', '.env', '.env'])).toEqual([
    'a.jpg',
    'A (2).jpg',
    'a (3).jpg',
    '.._b',
    '_',
    '.env',
    '.env (2)',
  ])
})

test('of 20,000 equal names, each is compared with a few others', () => {
  const names = Array.from({ length: 20_000 }, () => 'image.jpg')
  const lookUps = vi.spyOn(Set.prototype, 'has')
  const unique = uniqueNames(['image (3).jpg', ...names])
  const { length } = lookUps.mock.calls
  lookUps.mockRestore()
  expect(new Set(unique).size).toBe(20_001)
  expect(unique.slice(0, 4)).toEqual(['image (3).jpg', 'image.jpg', 'image (2).jpg', 'image (4).jpg'])
  expect(unique.at(-1)).toBe('image (20001).jpg')
  expect(length).toBeLessThan(3 * names.length)
})
