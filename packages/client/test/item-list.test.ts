import { expect, test } from 'vitest'
import { createClient, type Media, ShapeError } from '../src/index.ts'
import { json, type Responder, stubFetch } from './stub-fetch.ts'

const media = (id: string): Media => ({
  id,
  url: `https://media.example.org/media/${id}`,
  filename: null,
  content_type: 'image/png',
  size: 1,
  sha256: '00',
  created_at: '2026-11-01T09:30:00.000Z',
  width: null,
  height: null,
})

function clientOf(...responders: Responder[]) {
  const { fetch, sent } = stubFetch(...responders)
  const client = createClient({ url: 'https://media.example.org/box', token: 'secret', fetch })
  return { client, queries: () => sent.map(({ url }) => new URL(url)) }
}

async function collect<T>(from: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const one of from) all.push(one)
  return all
}

test('K4 items() follows the cursors with the same parameters', async () => {
  const { client, queries } = clientOf(
    json({ data: [media('a'), media('b')], next_cursor: 'c+1' }),
    json({ data: [media('c')], next_cursor: null }),
  )
  const options = {
    order: 'newest',
    kind: 'image',
    from: new Date(0),
    to: new Date(1),
    batchSize: 2,
  } as const
  expect(await collect(client.items(options))).toEqual([media('a'), media('b'), media('c')])
  const parameters = {
    order: 'newest',
    kind: 'image',
    from: '1970-01-01T00:00:00.000Z',
    to: '1970-01-01T00:00:00.001Z',
    limit: '2',
  }
  expect(queries().map(({ pathname }) => pathname)).toEqual(['/box/api/items', '/box/api/items'])
  expect(queries().map(({ searchParams }) => Object.fromEntries(searchParams))).toEqual([
    parameters,
    { ...parameters, after: 'c+1' },
  ])
})

test('items() requests only what is consumed, and sends no parameters by default', async () => {
  const { client, queries } = clientOf(json({ data: [media('a'), media('b')], next_cursor: 'more' }))
  for await (const { id } of client.items()) if (id === 'b') break
  expect(queries().map(({ search }) => search)).toEqual([''])
})

test.each([
  ['data', { next_cursor: null }],
  ['data[0].url', { data: [{ ...media('a'), url: 7 }], next_cursor: null }],
  ['data[0].variants.thumb', { data: [{ ...media('a'), variants: {} }], next_cursor: null }],
  ['next_cursor', { data: [] }],
])('the error for an invalid response names the field: %s', async (path, body) => {
  const { client } = clientOf(json(body))
  await expect(collect(client.items())).rejects.toMatchObject({ name: 'ShapeError', path })
})

test('a service that repeats a cursor does not cause an endless iteration', async () => {
  const { client } = clientOf(json({ data: [], next_cursor: 'same' }))
  await expect(collect(client.items())).rejects.toThrow(ShapeError)
})

test('an invalid date is a TypeError, and no request is sent', () => {
  const { client, queries } = clientOf(json({}))
  expect(() => client.items({ from: new Date('never') })).toThrow(TypeError)
  expect(queries()).toEqual([])
})
