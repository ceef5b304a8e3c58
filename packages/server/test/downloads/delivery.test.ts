import { expect, test } from 'vitest'
import { deliveryOf } from '../../src/downloads/representation.ts'

test.each([
  'image/jpeg',
  'image/png',
  'image/apng',
  'image/gif',
  'image/webp',
  'image/avif',
  'image/bmp',
  'image/x-icon',
  'audio/mpeg',
  'audio/ogg; codecs=opus',
  'audio/x-m4a',
  'video/mp4',
  'video/webm',
  'video/quicktime',
])('B6 %s is served inline, B5 in a sandbox', (type) => {
  expect(deliveryOf(type)).toEqual({ contentType: type, disposition: 'inline', isSandboxed: true })
})

test.each([
  'image/svg+xml',
  'IMAGE/SVG+XML',
  'image/svg+xml; charset=utf-8',
  'application/xml',
  'application/xhtml+xml',
  'application/mathml+xml',
  'application/json',
  'application/zip',
  'application/octet-stream',
  'application/pdfx',
  'image/jpeg2',
  'x-image/jpeg',
  '',
])('B6 %j is served as an attachment, B5 in a sandbox', (type) => {
  expect(deliveryOf(type)).toEqual({ contentType: type, disposition: 'attachment', isSandboxed: true })
})

test('B5 only PDF has no sandbox', () => {
  const pdf = { contentType: 'application/pdf', disposition: 'inline', isSandboxed: false }
  expect(deliveryOf('application/pdf')).toEqual(pdf)
})

test('B6 plain text is served inline as UTF-8, any other text as an attachment', () => {
  expect(deliveryOf('text/plain')).toEqual({
    contentType: 'text/plain; charset=utf-8',
    disposition: 'inline',
    isSandboxed: true,
  })
  for (const type of ['text/html', 'text/xml', 'text/css', 'text/javascript', 'text/csv', 'text/vtt']) {
    expect(deliveryOf(type)).toEqual({
      contentType: `${type}; charset=utf-8`,
      disposition: 'attachment',
      isSandboxed: true,
    })
  }
})
