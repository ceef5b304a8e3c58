import { expect, test } from 'vitest'
import { parseSendFile, type SendFile } from './send-file.ts'

const cases: readonly (readonly [string, SendFile | null | undefined])[] = [
  ['off', null],
  ['redirect', { header: 'location' }],
  ['x-sendfile', { header: 'x-sendfile' }],
  ['x-accel-redirect:/files', { header: 'x-accel-redirect', prefix: '/files' }],
  ['x-accel-redirect:/a/b.c/', { header: 'x-accel-redirect', prefix: '/a/b.c' }],
  ['on', undefined],
  ['', undefined],
  ['x-accel-redirect', undefined],
  ['x-accel-redirect:/', undefined],
  ['x-accel-redirect:files', undefined],
  ['x-accel-redirect:/a b', undefined],
  ['x-accel-redirect:/a\r\nb', undefined],
]

test.each(cases)('%j is read as %j', (text, expected) => {
  expect(parseSendFile(text)).toEqual(expected)
})
