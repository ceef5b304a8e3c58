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
  for (const source of ['/etc/hosts', {}, [new Uint8Array(1)], null, undefined, 7]) {
    // @ts-expect-error none of these is a source
    const failure = expect(client.upload(source)).rejects
    await failure.toThrow(TypeError)
    await failure.toThrow(/^the source of an upload must be a File, Blob, Uint8Array, .*openAsBlob/)
  }
  async function* texts() {
    yield 'text'
  }
  // @ts-expect-error text has no encoding yet
  await expect(client.upload(texts())).rejects.toThrow(TypeError)
})

test('createClient without options names them', () => {
  // @ts-expect-error the options are required
  expect(() => createClient()).toThrow(/^createClient takes \{ url, token \}/)
})

test('uploadAll refuses files without a name or a source, and names what is missing', async () => {
  const { fetch, sent } = stubFetch(json({}))
  const client = createClient({ url, token: 'x', fetch })
  const source = new Blob(['q'])
  const named = { source, filename: 'q.txt' }
  // @ts-expect-error the name is missing
  await expect(client.uploadAll([named, { source }])).rejects.toThrow(/^files\[1\]\.filename is missing/)
  // @ts-expect-error the source is missing
  await expect(client.uploadAll([{ filename: 'q.txt' }])).rejects.toThrow(/^files\[0\]\.source must be/)
  // @ts-expect-error not an array
  await expect(client.uploadAll(named)).rejects.toThrow(/^uploadAll takes an array/)
  expect(sent).toHaveLength(0)
})
