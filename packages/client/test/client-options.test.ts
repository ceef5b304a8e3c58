import { expect, test } from 'vitest'
import { createClient } from '../src/index.ts'
import { pageOf } from './page-of.ts'
import { json, stubFetch } from './stub-fetch.ts'

const url = 'https://media.example.org'

test.each(['', 'two words', 'line\nbreak', 'ümlaut', 'nul\0'])(
  'the token %j is refused, and the error does not contain it',
  (token) => {
    expect(() => createClient({ url, token })).toThrow(/^token must be a bearer token: visible ASCII/)
  },
)

test.each([0, -1, Number.NaN])('a timeout of %d is refused', (timeout) => {
  expect(() => createClient({ url, token: 'x', timeout })).toThrow(TypeError)
})

test('tokens in other formats are accepted', async () => {
  const { fetch, sent } = stubFetch(json(pageOf(1, 1)))
  await createClient({ url, token: '17|aB+/~._-=', fetch }).listPage(1)
  expect(sent[0]?.headers.get('authorization')).toBe('Bearer 17|aB+/~._-=')
})

test('the client and its errors do not expose the token', async () => {
  const { fetch } = stubFetch(json({}, { status: 401 }))
  const client = createClient({ url, token: 'very-secret', fetch })
  const error = await client.listPage(1).catch((thrown: unknown) => thrown)
  const { inspect } = await import('node:util')
  expect(inspect([client, error], { depth: 9, showHidden: true })).not.toContain('very-secret')
})

test.each([0, -1, 1.5, Number.NaN, 2 ** 53, Number.POSITIVE_INFINITY])(
  'the page number %d is refused',
  async (number) => {
    const { fetch, sent } = stubFetch(json(pageOf(1, 1)))
    const client = createClient({ url, token: 'x', fetch })
    await expect(client.listPage(number)).rejects.toThrow(TypeError)
    expect(() => client.pages({ from: number })).toThrow(TypeError)
    await expect(client.media({ from: number }).next()).rejects.toThrow(TypeError)
    expect(sent).toHaveLength(0)
  },
)

test('a value that is not an upload source is refused', async () => {
  const { fetch } = stubFetch(async ({ init }) => Response.json(await new Response(init.body).text()))
  const client = createClient({ url, token: 'x', fetch })
  for (const source of ['text', {}, [new Uint8Array(1)], null, 7]) {
    // @ts-expect-error none of these is a source
    await expect(client.upload(source)).rejects.toThrow(TypeError)
  }
  async function* texts() {
    yield 'text'
  }
  // @ts-expect-error text has no encoding yet
  await expect(client.upload(texts())).rejects.toThrow(TypeError)
})
