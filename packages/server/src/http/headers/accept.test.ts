import { expect, test } from 'vitest'
import { createFormatChoice, namesType, weightOf } from './accept.ts'

test.each([
  'text/html',
  'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'application/xml, TEXT/HTML;q=0.5',
  'text/html;charset=utf-8',
  'text/html;q=0.05',
])('Accept: %s names text/html', (accept) => {
  expect(namesType(accept, 'text/html')).toBe(true)
})

test.each([
  undefined,
  '',
  '*/*',
  'text/*',
  'text/plain',
  'text/html;q=0',
  'text/html; q=0.000',
  'text/htmlx',
])('Accept: %s does not name text/html', (accept) => {
  expect(namesType(accept, 'text/html')).toBe(false)
})

test.each([
  ['text/html', 1],
  ['text/html;q=0.5', 0.5],
  ['text/html; level=1; Q=0.25, text/plain', 0.25],
  ['text/plain;q=0.9, text/html;q=0.1', 0.1],
  ['text/html;q=x', 1],
  ['text/plain', 0],
])('Accept: %s gives text/html the weight %d', (accept, weight) => {
  expect(weightOf(accept, 'text/html')).toBe(weight)
})

const chrome = 'image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8'
const safari = 'image/webp,image/avif,image/jxl,image/heic,video/*;q=0.8,image/png,image/*;q=0.8,*/*;q=0.5'
const formatFor = createFormatChoice()

test.each([
  [undefined, 'webp'],
  ['', 'webp'],
  ['*/*', 'webp'],
  ['image/*', 'webp'],
  ['image/webp', 'webp'],
  ['image/avif', 'avif'],
  ['IMAGE/AVIF', 'avif'],
  [chrome, 'avif'],
  [safari, 'avif'],
  ['image/avif;q=0, */*', 'webp'],
  ['image/avif;q=0', 'webp'],
  ['image/avif;q=0.5, image/webp', 'webp'],
  ['image/avif;q=0.5, image/webp;q=0.5', 'avif'],
  ['image/avif;q=0.5, image/*;q=0.8', 'webp'],
  ['image/avif;q=0.9, image/*;q=0.8, */*', 'avif'],
  ['image/avif;q=0.9, */*', 'webp'],
  ['image/avif;q=0.5,', 'avif'],
  ['image/webp;q=0, image/avif;q=0.1', 'avif'],
  ['image/avifx', 'webp'],
  ['image/webp2, image/avif;q=0.5, image/*;q=0.8', 'webp'],
  ['image/webpx;q=0.1, image/avif;q=0.2, */*;q=0.3', 'webp'],
])('V4 a variant for Accept %o is %s, however often it is sent', (accept, format) => {
  for (let time = 0; time < 2; time += 1) expect(formatFor(accept)).toBe(format)
})

test('V4 further and longer Accept headers than are remembered are read each time', () => {
  for (let number = 0; number < 300; number += 1) {
    expect(formatFor(`image/avif;q=0.5, image/x-${number}`)).toBe('avif')
    expect(formatFor(`image/x-${number}`)).toBe('webp')
  }
  expect(formatFor(`${'image/x,'.repeat(1_000)}image/avif`)).toBe('avif')
})
