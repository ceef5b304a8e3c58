import type { Media } from '@mediabucket/client'
import { effect } from '@preact/signals'
import sharp from 'sharp'
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { createLocationWarning } from '../src/selection/location-warning.ts'

const place = {
  GPSLatitudeRef: 'N',
  GPSLatitude: '53/1 32/1 24/1',
  GPSLongitudeRef: 'W',
  GPSLongitude: '9/1 58/1 12/1',
}

const pictureOf = (id: string): Media => ({
  ...{ id, url: `https://media.example/media/${id}.jpg`, filename: `${id}.jpg`, content_type: 'image/jpeg' },
  ...{ size: 1000, sha256: '00', created_at: '', width: null, height: null },
})

let located: Uint8Array<ArrayBuffer>
let plain: Uint8Array<ArrayBuffer>
beforeAll(async () => {
  const picture = () => sharp({ create: { width: 8, height: 8, channels: 3, background: 'red' } }).jpeg()
  located = new Uint8Array(await picture().withExif({ IFD3: place }).toBuffer())
  plain = new Uint8Array(await picture().toBuffer())
})

/** The responses of the service by the ids of items. */
let responses: Record<string, () => Response>
beforeEach(() => {
  vi.stubGlobal('document', { baseURI: 'https://media.example/' })
})
afterEach(() => {
  vi.unstubAllGlobals()
})

const files = {
  async bytes({ id }: Pick<Media, 'id'>) {
    const response = responses[id]?.()
    if (!response?.ok) throw new Error('not loaded')
    return response
  },
  renew: async () => null,
}

/** A visit that answers each question with a confirmation. */
function visit() {
  const questions: unknown[] = []
  const warning = createLocationWarning(files, new AbortController().signal)
  effect(() => {
    const question = warning.pending.value
    if (question) {
      questions.push([question.media.id, question.examined ? 'has a location' : 'is not examined'])
      queueMicrotask(warning.confirm)
    }
  })
  return { questions, allows: (...ids: string[]) => warning.allows(ids.map(pictureOf)) }
}

test.each([
  ['a refusal', () => new Response('', { status: 429 })],
  ['a lost connection', () => Response.error()],
])(
  'G28 after %s, the page asks about the picture, and examines it again the next time',
  async (_, failure) => {
    responses = { a: () => new Response(plain), b: failure }
    const { questions, allows } = visit()
    expect(await allows('a', 'b')).toBe(true)
    expect(questions).toEqual([['b', 'is not examined']])
    await allows('b')
    responses = { b: () => new Response(located) }
    // The picture without a location is not examined again.
    await allows('a', 'b')
    await allows('a', 'b')
    expect(questions.slice(1)).toEqual([
      ['b', 'is not examined'],
      ['b', 'has a location'],
    ])
  },
)

test('G28 a location is asked about before a picture that cannot be examined', async () => {
  responses = { a: () => new Response('', { status: 429 }), b: () => new Response(located) }
  const { questions, allows } = visit()
  await allows('a', 'b')
  expect(questions).toEqual([['b', 'has a location']])
})

test('G28 pictures that are not examined before the person signs out are not shared', async () => {
  const closing = new AbortController()
  closing.abort()
  responses = {}
  const { allows, pending } = createLocationWarning(files, closing.signal)
  expect([await allows([pictureOf('a')]), pending.value]).toEqual([false, null])
})
