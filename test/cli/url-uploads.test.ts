import { afterAll, beforeAll, expect, test } from 'vitest'
import { createClient, ProblemError, type UrlUploadProgress } from '../../packages/client/src/index.ts'
import { type ForeignService, listen } from '../client/foreign-service.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { runClient } from './client-run.ts'

let server: TestServer
let other: ForeignService
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_URL_UPLOADS: '127.0.0.1' })
  other = await listen((request, response) => {
    const path = request.url ?? ''
    if (path.startsWith('/none')) response.writeHead(404).end()
    else response.end(`the file ${path}`)
  })
})
afterAll(async () => {
  await other[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
})

test('FU1, FU4 a client has the service request a file, with progress', async () => {
  const client = createClient(server)
  const progress: UrlUploadProgress[] = []
  const media = await client.uploadFromUrl(`${other.url}/a.txt`, {
    ...{ filename: 'b/c.txt', contentType: 'text/plain', labels: { album: '42' } },
    ...{ expiresAt: new Date('2100-01-01'), onProgress: (one) => progress.push(one) },
  })
  expect(media).toMatchObject({ filename: 'c.txt', size: 15, path: 'b/c.txt', labels: { album: '42' } })
  expect(progress[0]).toEqual({ received: 0, size: 15 })
  const again = { idempotencyKey: 'once' }
  expect(await client.uploadFromUrl(`${other.url}/k`, again)).toEqual(
    await client.uploadFromUrl(new URL(`${other.url}/k`), again),
  )
  const failure = client.uploadFromUrl(`${other.url}/none`)
  await expect(failure).rejects.toBeInstanceOf(ProblemError)
  await expect(failure).rejects.toMatchObject({ problem: { code: 'source-failed', source_status: 404 } })
  await expect(client.uploadFromUrl(`${other.url}/a`, { sha256: '0'.repeat(64) })).rejects.toMatchObject({
    status: 422,
    problem: { code: 'digest-mismatch' },
  })
  await expect(client.uploadFromUrl('ftp://example.org/')).rejects.toBeInstanceOf(TypeError)
})

test('FU1 upload URL stores the files at URLs, and prints URLs without their queries', async () => {
  const url = `${other.url}/harbour.txt?key=secret`
  const one = await runClient(server, 'upload', url, '--filename', 'h.txt', '--label', 'a=b', '--json')
  expect([one.code, one.stderr]).toEqual([0, expect.stringMatching(/^Uploaded 1 of 1 file, /)])
  const printed = Object(JSON.parse(one.stdout))
  expect(printed).toMatchObject({ path: `${other.url}/harbour.txt`, size: 32 })
  expect(one.stdout + one.stderr).not.toContain('secret')
  expect(await createClient(server).describe(printed.id)).toMatchObject({
    filename: 'h.txt',
    labels: { a: 'b' },
  })

  const several = await runClient(
    server,
    'upload',
    `${other.url}/1`,
    `${other.url}/none?key=secret`,
    `${other.url}/2`,
  )
  expect(several.code).toBe(1)
  expect(
    several.stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t')[1]),
  ).toEqual([`${other.url}/1`, `${other.url}/2`])
  expect(several.stderr).toContain(
    `Not uploaded:\n  ${other.url}/none: The server of the URL responded with 404.`,
  )
  expect(several.stderr).not.toContain('secret')

  for (const wrong of [
    [url, 'file'],
    [url, '--dry-run'],
    [url, url, '--filename', 'x'],
  ])
    expect((await runClient(server, 'upload', ...wrong)).code).toBe(2)
  await using closed = await startServer()
  const refused = await runClient(closed, 'upload', url)
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('MEDIABUCKET_URL_UPLOADS')])
  expect(refused.stderr).not.toContain('lacks a scope')
})

test('a URL that no request can have is a mistake of the command, and is not shown with its password', async () => {
  for (const wrong of ['http://', 'https://[x/a', 'http://me:secret@127.0.0.1/a']) {
    const { code, stdout, stderr } = await runClient(server, 'upload', `${other.url}/before`, wrong)
    expect([wrong, code, stdout]).toEqual([wrong, 2, ''])
    expect(stderr).toMatch(/^mediabucket: upload takes URLs with a host, and without user name and password/)
    expect(stderr).not.toContain('secret')
  }
})
