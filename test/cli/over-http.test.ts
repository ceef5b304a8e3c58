import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { startReceiver } from '../harness/receiver.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { outcome } from '../harness/upkeep.ts'
import { upload } from '../harness/upload.ts'
import { atWorkerEnd } from '../harness/worker-end.ts'
import { lines, runClient } from './client-run.ts'

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

test('Y5, O16 over HTTP too, --follow ends after the time of --until', async () => {
  const options = ['audit', '--follow', '--since', '2020-01-01', '--until', '2020-01-02']
  expect(await overHttp(everyScope, ...options)).toMatchObject({ code: 0, stdout: '' })
})

test('US10, US11, O16 bucket usage prints the days of a bucket, and all buckets on a day, over HTTP as on the data', async () => {
  const { authorization } = await makeToken(server, '--bucket', 'used')
  await upload(server, '12345', { name: 'five.txt', authorization })
  const day = new Date().toISOString().slice(0, 10)
  for (const run of [onData, (...args: string[]) => overHttp(['buckets:manage'], ...args)]) {
    const usage = async (...args: string[]) => {
      const { code, stdout, stderr } = await run('bucket', 'usage', ...args)
      expect([args, code, stderr]).toEqual([args, 0, ''])
      return stdout.trim().split('\n')
    }
    const days = (await usage('used', '--json')).map((line) => JSON.parse(line))
    expect(days).toHaveLength(30)
    expect(days.find((one) => one.day === day)).toMatchObject({ items: 1, bytes: 5, added: { items: 1 } })
    expect(await usage('used', '--from', day, '--to', day)).toEqual([
      expect.stringMatching(new RegExp(`^${day} +1 +5 B +5 B +0 B +0 B +\\d+$`)),
    ])
    const buckets = (await usage('--day', day, '--json')).map((line) => JSON.parse(line))
    expect(buckets.find(({ bucket }) => bucket === 'used')).toMatchObject({ bytes: 5, deleted_at: null })
    expect((await usage('--day', day)).filter((line) => line.startsWith('used '))).toHaveLength(1)
    for (const [args, code, text] of [
      [['nowhere'], 4, /no bucket "nowhere"/],
      [['used', '--day', day], 2, /takes a NAME with --from and --to, or --day alone/],
      [['--from', day], 2, /takes a NAME with --from and --to, or --day alone/],
      [['used', '--from', 'yesterday'], 2, /--from accepts one date from \d/],
      [['used', 'more'], 2, /takes a NAME/],
    ] as const)
      expect(await run('bucket', 'usage', ...args), args.join(' ')).toMatchObject({
        ...{ code, stdout: '' },
        stderr: expect.stringMatching(text),
      })
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

test('O16 a command in a message acts on the same service, not on the data of this machine', async () => {
  const run = (...args: string[]) => overHttp(everyScope, ...args)
  const connection = ` --url ${server.url}\n`
  const created = await run('bucket', 'create', 'hinted', '--signed-pages', 'on')
  expect(created.stderr).toBe(
    `Created the bucket "hinted". Create a token for it: mediabucket token create --bucket hinted${connection}` +
      `The bucket is public, so its lists have plain URLs until it is private: mediabucket bucket set hinted --private on${connection}`,
  )
  expect((await run('token', 'list', '--bucket', 'hinted')).stderr).toBe(
    `There are no tokens. Create one: mediabucket token create --bucket NAME${connection}`,
  )
  expect((await run('webhook', 'list', '--bucket', 'hinted')).stderr).toBe(
    `There are no webhooks. Create one: mediabucket webhook create --bucket NAME --to URL${connection}`,
  )
  expect((await onData('token', 'list', '--bucket', 'hinted')).stderr).toBe(
    'There are no tokens. Create one: mediabucket token create --bucket NAME\n',
  )
})

test('O16 buckets are managed over HTTP as on the data', async () => {
  const run = (...args: string[]) => overHttp(everyScope, ...args)
  expect(
    await run('bucket', 'create', 'far', '--max-bytes', '5MB', '--remove-metadata', 'except-taken'),
  ).toEqual({
    ...{ code: 0, stdout: '' },
    stderr: `Created the bucket "far". Create a token for it: mediabucket token create --bucket far --url ${server.url}\n`,
  })
  expect(await run('bucket', 'create', 'far')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('far'),
  })
  expect(await run('bucket', 'set', 'far', '--private', 'on', '--max-bytes', 'none')).toMatchObject({
    ...{ code: 0, stderr: 'Settings of the bucket "far": no limit on bytes, private.\n' },
  })
  const listed = await run('bucket', 'list', '--json')
  const objectsOf = ({ stdout }: { readonly stdout: string }) => lines(stdout).map((line) => JSON.parse(line))
  expect(objectsOf(listed)).toEqual(objectsOf(await onData('bucket', 'list', '--json')))
  expect(JSON.parse(lines(listed.stdout).find((line) => line.includes('"far"')) ?? '')).toMatchObject({
    ...{ max_bytes: null, private: true, remove_metadata: true, keep_taken_at: true },
  })
  expect((await run('bucket', 'list')).stdout).toBe((await onData('bucket', 'list')).stdout)
  expect(await run('bucket', 'delete', 'far')).toMatchObject({ code: 2 })
  expect(await run('bucket', 'delete', 'far', '--yes')).toMatchObject({
    ...{ code: 0, stderr: 'Deleted the bucket "far" with 0 items.\n' },
  })
  for (const args of [
    ['set', 'far', '--private', 'on'],
    ['delete', 'far', '--yes'],
  ])
    expect(await run('bucket', ...args), args.join(' ')).toMatchObject({ code: 4, stdout: '' })
  expect(await overHttp(['media:read'], 'bucket', 'list')).toMatchObject({ code: 3 })
})

test('O16 tokens are managed over HTTP as on the data', async () => {
  const run = (...args: string[]) => overHttp(everyScope, ...args)
  const made = await run('token', 'create', '--bucket', 'tenant', '--name', 'web', '--scope', 'media:read')
  expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^mbkt_/) })
  expect(made.stderr).toMatch(
    /^Created the bucket "tenant"[^\n]*\nCreated the token tok_\w+ for the bucket "tenant"/,
  )
  const limited = ['--name', 'drop', '--scope', 'media:write', '--max-items', '3', '--expires', '1d']
  expect(await run('token', 'create', '--bucket', 'tenant', ...limited)).toMatchObject({ code: 0 })
  const listed = await run('token', 'list', '--bucket', 'tenant', '--json')
  expect(listed.stdout).toBe((await onData('token', 'list', '--bucket', 'tenant', '--json')).stdout)
  expect(lines(listed.stdout)).toHaveLength(2)
  // Those of all buckets; the data have those of the service too.
  const ofBuckets = lines((await onData('token', 'list', '--json')).stdout).filter(
    (line) => !line.includes('"bucket":null'),
  )
  expect(lines((await run('token', 'list', '--json')).stdout).toSorted()).toEqual(ofBuckets.toSorted())
  const rotated = await run('token', 'rotate', 'web', '--bucket', 'tenant', '--overlap', '1h')
  expect(rotated).toMatchObject({ code: 0, stdout: expect.stringMatching(/^mbkt_/) })
  const [web] = lines(listed.stdout).map((line) => JSON.parse(line))
  expect(await run('token', 'rotate', web.id, '--bucket', 'tenant')).toMatchObject({ code: 1 })
  expect(await run('token', 'revoke', 'drop')).toMatchObject({
    ...{ code: 0, stderr: expect.stringMatching(/^Revoked the token tok_\w+ "drop" of the bucket "tenant"/) },
  })
  expect(await run('token', 'revoke', 'nobody', '--bucket', 'tenant')).toMatchObject({ code: 4 })
  expect(await run('token', 'create', '--service', '--scope', 'media:read')).toMatchObject({
    ...{ code: 2, stdout: '', stderr: expect.stringContaining('where the service runs') },
  })
})

test('O16 a token of a bucket manages its bucket over HTTP, and creates upload links', async () => {
  const { token } = await makeToken(
    server,
    ...['--bucket', 'own', '--scope', 'media:read,media:write,tokens:manage'],
  )
  const run = (...args: string[]) => runClient({ url: server.url, token }, ...args, '--url', server.url)
  const made = await run('token', 'create', '--name', 'reader', '--scope', 'media:read')
  expect(made).toMatchObject({ code: 0, stderr: expect.stringContaining('for the bucket "own"') })
  expect((await run('token', 'list', '--json')).stdout).toBe(
    (await onData('token', 'list', '--bucket', 'own', '--json')).stdout,
  )
  for (const args of [
    ['bucket', 'list'],
    ['keys', 'list'],
    ['audit'],
    ['token', 'list', '--bucket', 'default'],
  ])
    expect(await run(...args), args.join(' ')).toMatchObject({ code: 3, stdout: '' })
  expect(await run('ask', 'Photos')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('/upload#mbkt_'),
  })
  const asked = await overHttp(everyScope, 'ask', 'Photos', '--bucket', 'own')
  expect(asked).toMatchObject({ code: 0, stderr: expect.stringContaining('for the bucket "own"') })
})
