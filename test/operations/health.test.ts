import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { startServer } from '../harness/server.ts'

test('O1 a ready server reports that it is ready, without a token', async () => {
  await using server = await startServer()
  const ready = { status: 'ready', reads: true, writes: true, reasons: [] }
  for (const [path, body] of [
    ['/healthz', { status: 'ok' }],
    ['/readyz', ready],
    ['/readyz?writes', ready],
  ] as const) {
    const response = await fetch(`${server.url}${path}`)
    expect([response.status, await response.json()]).toEqual([200, body])
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect((await fetch(`${server.url}${path}`, { method: 'HEAD' })).status).toBe(200)
  }
})

test('O1, P6 while the catalog is locked the server is live, lists items, and is not ready for uploads', async () => {
  await using server = await startServer()
  const holder = new DatabaseSync(join(server.data, 'catalog.db'))
  holder.exec('BEGIN IMMEDIATE')
  try {
    const ready = fetch(`${server.url}/readyz?writes`)
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
    expect((await server.request('/api/media')).status).toBe(200)
    expect(Number((await ready).headers.get('retry-after'))).toBeGreaterThan(0)
    const { reasons } = await expectProblem(await ready, 503, 'not-ready')
    expect(reasons).toEqual(['catalog-unwritable'])
    const reads = await fetch(`${server.url}/readyz`)
    expect([reads.status, await reads.json()]).toEqual([
      200,
      { status: 'ready', reads: true, writes: false, reasons: ['catalog-unwritable'] },
    ])
  } finally {
    holder.close()
  }
  expect((await fetch(`${server.url}/readyz?writes`)).status).toBe(200)
  expect((await server.request('/api/media', { method: 'POST', body: 'x' })).status).toBe(201)
})
