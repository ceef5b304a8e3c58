import { expect, test } from 'vitest'
import { createClient } from '../../packages/client/src/index.ts'
import { sendJson, startForeign } from './foreign-service.ts'

test('a function returns the token of each request, also of a retry', async () => {
  let requests = 0
  await using service = await startForeign((_request, response) => {
    requests += 1
    if (requests === 1) response.writeHead(503).end()
    else sendJson(response, { name: 'b', items: 0, bytes: 0 })
  })
  const tokens = ['first', 'second']
  const client = createClient({
    url: service.url,
    token: async () => tokens.shift() ?? 'third',
    retry: { delay: 1 },
  })
  await client.listPage(1).catch(() => undefined)
  expect(service.requests.map(({ headers }) => headers.authorization)).toEqual([
    'Bearer first',
    'Bearer second',
  ])
})

test('an error of the function rejects the call without a request, and so does a token with a line break', async () => {
  await using service = await startForeign((_request, response) => response.end())
  const reason = new Error('the session has ended')
  const failing = createClient({ url: service.url, token: () => Promise.reject(reason) })
  await expect(failing.whoami()).rejects.toBe(reason)
  const malformed = createClient({ url: service.url, token: () => 'secret\n' })
  const error = await malformed.whoami().catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(TypeError)
  expect(String(error)).not.toContain('secret')
  expect(service.requests).toEqual([])
})
