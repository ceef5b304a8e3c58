import { expect, test } from 'vitest'
import { seed } from '../harness/seed.ts'
import { runCommand, startServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { upload } from '../harness/upload.ts'

test('O6 a second server on the same data refuses to start, says why, and does not disturb the first', async () => {
  await using server = await startServer()
  const { url } = await upload(server, 'kept')
  const second = runCommand(['serve'], { MEDIABUCKET_DATA: server.data, MEDIABUCKET_PORT: '0' })
  await expect(second).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      /^mediabucket: The data directory \S+ is already served by another .* process/,
    ),
  })
  expect(await (await fetch(url)).text()).toBe('kept')
  expect((await server.request('/api/media', { method: 'POST', body: 'x' })).status).toBe(201)
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
  expect(await server.stop()).toBe(0)
})

test('O6 data can be served again once the first server has stopped or was killed', async () => {
  await using first = await startServer()
  await first.kill()
  await using second = await startServer({}, first.data)
  await second.stop()
  await using third = await startServer({}, first.data)
  const headers = { authorization: `Bearer ${first.token}` }
  expect((await third.request('/api/media', { headers })).status).toBe(200)
})

test('O6 several commands run at the same time while a server is running', async () => {
  await using server = await startServer()
  const [one, two] = await Promise.all([
    makeToken(server, '--bucket', 'one'),
    makeToken(server, '--bucket', 'two'),
    server.command('token', 'list'),
    seed(server, '--items', '500', '--bucket', 'seeded'),
  ])
  for (const { authorization } of [one, two]) {
    expect((await server.request('/api/media', { headers: { authorization } })).status).toBe(200)
  }
  expect(server.log().filter(({ level }) => Number(level) >= 40)).toEqual([])
})
