import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { startReceiver } from '../harness/receiver.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { outcome } from '../harness/upkeep.ts'
import { upload } from '../harness/upload.ts'
import { atWorkerEnd } from '../harness/worker-end.ts'
import { runClient } from './client-run.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({
    MEDIABUCKET_AUDIT: 'changes',
    MEDIABUCKET_ADDRESS_RATE: 'off',
    MEDIABUCKET_WEBHOOK_ALLOW: '127.0.0.1',
  })
  atWorkerEnd(() => server[Symbol.asyncDispose]())
})

const everyScope = [
  'buckets:manage',
  'media:read',
  'media:write',
  'media:delete',
  'tokens:manage',
  'webhooks:manage',
]

/** Runs the command over HTTP, with a token of the service. */
async function overHttp(scopes: readonly string[], ...args: string[]) {
  const { token } = await makeToken(server, '--service', '--scope', scopes.join(','))
  return await runClient({ url: server.url, token }, ...args, '--url', server.url)
}

/** Runs the command on the data. */
const onData = (...args: string[]) => outcome(args, server.data)

test('O16 keys are managed over HTTP as on the data', async () => {
  const rotated = await overHttp(everyScope, 'keys', 'rotate')
  expect(rotated).toMatchObject({ code: 0, stderr: expect.stringMatching(/^Created a key, /) })
  const id = rotated.stdout.trim()
  const listed = await overHttp(everyScope, 'keys', 'list', '--json')
  expect(listed).toEqual(await onData('keys', 'list', '--json'))
  expect(listed.stdout).toContain(id)
  expect(await overHttp(everyScope, 'keys', 'remove', id)).toMatchObject({ code: 0 })
  for (const run of [onData, (...args: string[]) => overHttp(everyScope, ...args)])
    expect(await run('keys', 'remove', id)).toMatchObject({
      ...{ code: 4, stdout: '' },
      stderr: expect.stringContaining('The service has no key with this id.'),
    })
  expect(await overHttp(['media:read'], 'keys', 'list')).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('buckets:manage'),
  })
})

test('O16 the audit log is printed over HTTP as on the data', async () => {
  await upload(server, 'x')
  for (const options of [['--json'], ['--csv', '--action', 'upload'], ['--bucket', 'default']]) {
    const { stdout, code } = await overHttp(everyScope, 'audit', ...options)
    expect(code).toBe(0)
    expect(stdout).not.toBe('')
    // The token of the request was created before it was sent, so the data have no further event.
    expect(stdout).toBe((await onData('audit', ...options)).stdout)
  }
})

test('O16 webhooks are managed over HTTP as on the data', async () => {
  await onData('bucket', 'create', 'hooked')
  const receiver = await startReceiver()
  onTestFinished(receiver.close)
  const { token: ofBucket } = await makeToken(server, '--bucket', 'hooked', '--scope', 'webhooks:manage')
  const runs = {
    'a service token': (...args: string[]) => overHttp(everyScope, ...args, '--bucket', 'hooked'),
    'a token of the bucket': (...args: string[]) =>
      runClient({ url: server.url, token: ofBucket }, ...args, '--url', server.url),
  }
  for (const [name, run] of Object.entries(runs)) {
    const created = await run('webhook', 'create', '--to', receiver.url, '--kinds', 'added')
    expect(created, name).toMatchObject({ code: 0, stdout: expect.stringMatching(/^whsec_/) })
    receiver.secrets.add(created.stdout.trim())
    const listed = await run('webhook', 'list', '--json')
    expect(listed.stdout, name).toBe((await onData('webhook', 'list', '--bucket', 'hooked', '--json')).stdout)
    const { id } = JSON.parse(listed.stdout)
    expect(await run('webhook', 'test', id), name).toMatchObject({ code: 0 })
    expect(await run('webhook', 'set', id, '--state', 'off', '--new-secret'), name).toMatchObject({
      ...{ code: 0, stdout: expect.stringMatching(/^whsec_/) },
      stderr: expect.stringMatching(/^Changed the webhook wh_\w+, which is off\./),
    })
    const deliveries = await run('webhook', 'deliveries', id, '--json')
    expect(JSON.parse(deliveries.stdout), name).toMatchObject({ type: 'webhook.test', delivered: true })
    expect(await run('webhook', 'redeliver', id, '1'), name).toMatchObject({ code: 0 })
    expect(await run('webhook', 'delete', id), name).toMatchObject({ code: 0 })
    expect(await run('webhook', 'delete', id), name).toMatchObject({ code: 4, stdout: '' })
    expect((await onData('webhook', 'list', '--bucket', 'hooked', '--json')).stdout).toBe('')
  }
  const without = await overHttp(everyScope, 'webhook', 'delete', 'wh_000000000000')
  expect(without).toMatchObject({ code: 1, stderr: expect.stringContaining('Mediabucket-Bucket') })
})
