import { expect, test } from 'vitest'
import { builtInSizes, parseVariantSizes } from './variant-sizes.ts'
import { createVariantList, isVariantKey } from './variants.ts'

const [thumb, medium] = builtInSizes

test('MEDIABUCKET_VARIANTS lists names with a side or with width and height, and sides alone', () => {
  expect(parseVariantSizes('thumb=300:cover, card=640x360:cover,320')).toEqual([
    { name: 'thumb', width: 300, height: 300, fit: 'cover' },
    medium,
    { name: 'card', width: 640, height: 360, fit: 'cover' },
    { name: '320', width: 320, height: 320, fit: 'contain' },
  ])
})

test.each(['', 'thumb=400, medium=1600', 'medium=1600:contain,'])(
  'V1 thumb and medium always exist: %o',
  (text) => expect(parseVariantSizes(text)).toEqual([thumb, medium]),
)

test.each([
  ...[
    'card',
    'card=',
    'card=0',
    'card=4097',
    'card=1x0',
    'card=640x',
    'card=640:fill',
    'Card=1',
    '../x=1',
    'a b=1',
  ],
  ...['0x10', '1e2', '010', 'card=010', 'card=1x01', '-card=1'],
  ...['card=1,card=2', '99999', 'card=1;2', `${'x'.repeat(33)}=1`],
  Array.from({ length: 19 }, (_, index) => index + 1).join(),
])('MEDIABUCKET_VARIANTS does not accept %s', (text) => {
  expect(parseVariantSizes(text)).toBeUndefined()
})

test('a size has another key in each format, and a new key if it is changed; names do not change keys', () => {
  const keysOf = (text: string) => createVariantList(parseVariantSizes(text) ?? []).keys
  expect(keysOf('')).toEqual(['thumb-3', 'thumb-3-avif', 'medium-3', 'medium-3-avif'])
  const all = ['thumb=300', 'thumb=300:cover', 'thumb=300x200', 'thumb=400:cover'].map(
    (text) => keysOf(text)[0],
  )
  expect(new Set(all).size).toBe(4)
  expect(keysOf('preview=300')[4]).toBe(keysOf('thumb=300')[0])
  for (const key of all) expect(isVariantKey(key ?? '')).toBe(true)
  for (const text of ['', '.', '..', 'a/b', 'a.b', 'A', 'a\0']) expect(isVariantKey(text)).toBe(false)
})
