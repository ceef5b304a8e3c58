import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { type Connection, openConnection } from '../harness/connection.ts'
import { expectProblem } from '../harness/problem.ts'
import { startServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { listAll } from '../harness/upkeep.ts'
import { onDisk, upload } from '../harness/upload.ts'

const run = promisify(execFile)

test('S7 without file descriptors requests receive 503 with Retry-After; no item is lost, and the server recovers', async () => {
  await using server = await startServer({
    MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS: '0',
    // Each response with bytes needs a file.
    ...onDisk,
    MEDIABUCKET_CACHE: '0',
  })
  const { id, url } = await upload(server, 'stored before')
  // More than is held in memory, so that it needs a temporary file.
  const large = 'x'.repeat(200_000)
  const limit = async (files: number) =>
    run('prlimit', ['--pid', `${server.process.pid}`, `--nofile=${files}:`])
  // These requests use an open connection, and the limit leaves no descriptor for a file.
  expect((await fetch(url)).status).toBe(200)
  await limit(10)
  const send = () => server.request('/api/media', { method: 'POST', body: large })
  for (const response of [await fetch(url), await send()]) {
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
    await expectProblem(response, 503, 'overloaded')
  }
  expect((await server.request('/api/media')).status).toBe(200)

  await limit(1_000)
  expect(await (await fetch(url)).text()).toBe('stored before')
  const stored = await send()
  expect(stored.status).toBe(201)
  expect((await listAll(server)).map((listed) => listed.includes(id))).toEqual([true, false])
})

test('S7 without file descriptors new connections are closed without a response, and it recovers', async () => {
  await using server = await startServer({ MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS: '0' })
  const { url } = await upload(server, 'stored before')
  await run('prlimit', ['--pid', `${server.process.pid}`, '--nofile=80:'])
  const flood: Connection[] = []
  for (let count = 0; count < 100; count += 1)
    flood.push(
      ...(await openConnection(server.url).then(
        (one) => [one],
        () => [],
      )),
    )
  // Connections that were accepted stay open, so this one found no descriptor (docs/operations.md).
  const refused = await Promise.race(flood.map((connection) => connection.closed.then(() => connection)))
  expect(refused.received()).toBe('')
  for (const connection of flood) connection[Symbol.dispose]()
  await until('it serves again', () =>
    fetch(url).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  expect((await upload(server, 'stored after')).size).toBe(12)
  expect(await listAll(server)).toHaveLength(2)
})
