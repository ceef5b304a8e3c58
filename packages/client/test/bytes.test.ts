import { expect, test } from 'vitest'
import { createClient } from '../src/index.ts'
import { status, stubFetch } from './stub-fetch.ts'

const url = 'https://media.example.org'

test('B3 firstBytes requests the first bytes', async () => {
  const { fetch, sent } = stubFetch(status(206, {}, 'first'))
  const response = await createClient({ url, token: 'secret', fetch }).get('abc', { firstBytes: 5 })
  expect([response.status, await response.text()]).toEqual([206, 'first'])
  expect(sent[0]?.headers.get('range')).toBe('bytes=0-4')
})

test('a request without the token follows redirects and creates no link', async () => {
  const { fetch, sent } = stubFetch(status(404))
  const client = createClient({ url, token: 'secret', fetch, retry: { attempts: 1 } })
  await expect(client.get(`${url}/media/abc`, { withToken: false })).rejects.toMatchObject({ status: 404 })
  expect(sent).toHaveLength(1)
  expect(sent[0]?.headers.has('authorization')).toBe(false)
  expect(sent[0]?.init.redirect).toBe('follow')
})

test.each([0, -1, 1.5])('firstBytes %d is a TypeError', async (firstBytes) => {
  const { fetch, sent } = stubFetch(status(200))
  const client = createClient({ url, token: 'secret', fetch })
  await expect(client.get('abc', { firstBytes })).rejects.toBeInstanceOf(TypeError)
  await expect(
    client.get('abc', { firstBytes: 1, resumeFrom: { offset: 1, etag: '"a"' } }),
  ).rejects.toBeInstanceOf(TypeError)
  expect(sent).toEqual([])
})
