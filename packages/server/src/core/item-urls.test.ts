import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { newItemId } from './ids.ts'
import { allVariants, hasSignature, isSignedWith, parseSignedUrl, signUrl } from './item-urls.ts'

const urls = { baseUrl: 'https://media.example', extensions: true }
const keys = new Map(['4h9b1e7g0mzq', 'second'].map((id) => [id, randomBytes(32)]))
const key = (id: string) => ({ id, secret: keys.get(id) ?? new Uint8Array() })

/** Whether the service accepts this target: what verifyLink and linkOf check, except the time. */
function isAccepted(target: string): boolean {
  const signed = parseSignedUrl(target)
  const secret = signed === null ? undefined : keys.get(signed.keyId)
  return signed !== null && secret !== undefined && isSignedWith(secret, signed)
}

const targetOf = (url: string) => url.slice(urls.baseUrl.length)

const options = fc.record({
  expires: fc.integer({ min: 1, max: 999_999_999_999 }),
  variant: fc.option(fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,31}$/)),
  isDownload: fc.boolean(),
})
const extensions = fc.option(fc.constantFrom('jpg', 'mp4', 'txt'))
const signed = fc
  .tuple(options, extensions, fc.constantFrom(...keys.keys()))
  .map(([chosen, extension, id]) => targetOf(signUrl(urls, key(id), { id: newItemId(), extension }, chosen)))

test('H5 a signed URL is accepted as it was signed', () => {
  fc.assert(fc.property(signed, (target) => isAccepted(target) && hasSignature(target)))
})

test('H5 the URL of all variants is accepted with one of them appended or sorted in, and no other URL is', () => {
  const item = { id: newItemId(), extension: 'jpg' }
  const all = targetOf(signUrl(urls, key('second'), item, { expires: 1_800_000_000, variant: allVariants }))
  const one = targetOf(signUrl(urls, key('second'), item, { expires: 1_800_000_000, variant: 'thumb' }))
  const plain = targetOf(signUrl(urls, key('second'), item, { expires: 1_800_000_000 }))
  expect(all).toBe(`${all.split('&signature=')[0]}&signature=${parseSignedUrl(all)?.signature}&variants=all`)
  for (const choice of ['&variant=thumb', '&variant=card-2', '&w=640', '&w=99999'])
    for (const wait of ['', '&wait=0', '&wait=60'])
      expect([choice, wait, isAccepted(`${all}${choice}${wait}`)]).toEqual([choice, wait, true])
  expect(isAccepted(all.replace('&variants', '&variant=thumb&variants'))).toBe(true)
  for (const wrong of [
    '&variant=',
    '&w=0',
    '&w=',
    '&w=100000',
    '&w=1&w=2',
    '&variant=a&w=1',
    '&variants=all',
    '&wait=1',
  ])
    expect([wrong, isAccepted(`${all}${wrong}`)]).toEqual([wrong, false])
  for (const [from, more] of [
    ...[
      [one, '&variants=all'],
      [one, '&w=1'],
      [plain, '&variants=all'],
      [plain, '&w=1'],
      [plain, '&variant=thumb'],
    ],
    ...[
      [one.replace('thumb', 'all'), ''],
      [one.replace('variant=thumb', 'variants=all'), ''],
    ],
    ...[
      [all.replace('variants=all', 'variant=all'), ''],
      [all.replace('&variants=all', ''), ''],
    ],
  ])
    expect([from, more, isAccepted(`${from}${more}`)]).toEqual([from, more, false])
})

const characters = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_./?&=%#+~ \0\u00e4'

test('H5 no change of any character is accepted', () => {
  const target = targetOf(
    signUrl(
      urls,
      key('second'),
      { id: newItemId(), extension: 'jpg' },
      { expires: 1_800_000_000, variant: 'thumb', isDownload: true },
    ),
  )
  for (let at = 0; at < target.length; at += 1) {
    expect(isAccepted(target.slice(0, at) + target.slice(at + 1))).toBe(false)
    for (const character of characters) {
      expect(isAccepted(target.slice(0, at) + character + target.slice(at))).toBe(false)
      if (character !== target[at])
        expect([
          target,
          at,
          character,
          isAccepted(target.slice(0, at) + character + target.slice(at + 1)),
        ]).toEqual([...[target, at, character], false])
    }
  }
  for (const character of characters) expect(isAccepted(target + character)).toBe(false)
})

test('H5 no other order, repetition, removal or addition of parameters is accepted', () => {
  const extra = fc.constantFrom(
    '',
    'utm=1',
    'variant=thumb',
    'download=1',
    'download',
    'expires=9',
    'key=second',
    'signature=',
  )
  fc.assert(
    fc.property(
      signed,
      fc.infiniteStream(fc.nat()),
      fc.array(extra, { maxLength: 3 }),
      (target, numbers, more) => {
        const [path = '', query = ''] = target.split('?')
        const sent = query.split('&')
        const kept = [...sent, ...sent, ...more].filter(() => (numbers.next().value ?? 0) % 3 !== 0)
        const mixed = kept
          .map((parameter) => ({ parameter, place: numbers.next().value ?? 0 }))
          .sort((a, b) => a.place - b.place)
          .map(({ parameter }) => parameter)
          .join('&')
        return mixed === query || !isAccepted(`${path}?${mixed}`)
      },
    ),
  )
})

test('H5 no part of one signed URL is accepted in another one', () => {
  const partsOf = (target: string) =>
    [target.split('?')[0] ?? '', ...new URLSearchParams(target.split('?')[1])] as const
  fc.assert(
    fc.property(signed, signed, fc.nat(), (one, other, at) => {
      const [path, ...parameters] = partsOf(one)
      const [otherPath, ...otherParameters] = partsOf(other)
      const place = at % (parameters.length + 1)
      const swapped = parameters.map(([name, value], index) =>
        index === place - 1
          ? [name, otherParameters.find(([same]) => same === name)?.[1] ?? value]
          : [name, value],
      )
      const mixed = `${place === 0 ? otherPath : path}?${swapped.map((pair) => pair.join('=')).join('&')}`
      return mixed === one || !isAccepted(mixed)
    }),
  )
})

test('H5, V17 the time that a client waits for a variant may follow a signed URL, and only at its end', () => {
  const url = (variant: string | null) =>
    targetOf(signUrl(urls, key('second'), { id: newItemId(), extension: 'jpg' }, { expires: 9, variant }))
  const target = url('thumb')
  expect([isAccepted(`${target}&wait=0`), parseSignedUrl(`${target}&wait=12`)?.wait]).toEqual([true, '12'])
  for (const wrong of [
    ...['&wait=', '&wait=100', '&wait=0&wait=0', '&wait=x'].map((suffix) => `${target}${suffix}`),
    target.replace('?', '?wait=0&'),
    target.replace('&variant', '&wait=0&variant'),
    `${url(null)}&wait=0`,
  ])
    expect([wrong, isAccepted(wrong)]).toEqual([wrong, false])
})

test('H8 a signature of another key, and of no key, is refused', () => {
  const item = { id: newItemId(), extension: null }
  const foreign = { id: 'second', secret: randomBytes(32) }
  expect(isAccepted(targetOf(signUrl(urls, foreign, item, { expires: 1 })))).toBe(false)
  expect(isAccepted(targetOf(signUrl(urls, { ...foreign, id: 'third' }, item, { expires: 1 })))).toBe(false)
  expect(
    isAccepted(targetOf(signUrl(urls, { id: 'second', secret: new Uint8Array() }, item, { expires: 1 }))),
  ).toBe(false)
})

test('H5 a URL without a signature is recognized', () => {
  for (const url of ['/media/x', '/media/x?variant=thumb', '/media/x?download', '/media/x?expires=1&key=2'])
    expect(hasSignature(url)).toBe(false)
})
