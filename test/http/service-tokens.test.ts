import { beforeAll, expect, test } from 'vitest'
import { bucketWith } from '../harness/bucket.ts'
import { runHere } from '../harness/commands.ts'
import { expectProblem } from '../harness/problem.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const makeServiceToken = (...scopes: string[]) =>
  makeToken(server, '--service', '--name', 'shop', '--scope', scopes.join(','))

test('ST2 a service token uploads to the bucket of the header, and lists it', async () => {
  const [one, other] = [await bucketWith(server), await bucketWith(server)]
  const { authorization, token } = await makeServiceToken('media:read', 'media:write')
  expect(token).toMatch(/^mbks_[0-9a-z]{38}$/)
  const send = (path: string, bucket: string | null, init: RequestInit = {}) =>
    server.request(path, {
      ...init,
      headers: { authorization, ...(bucket !== null && { 'mediabucket-bucket': bucket }) },
    })
  const uploaded = await send('/api/media', one.name, { method: 'POST', body: 'x' })
  expect(uploaded.status).toBe(201)
  for (const path of ['/api/media', '/api/items', '/api/bucket']) {
    expect((await send(path, one.name)).status, path).toBe(200)
    await expectProblem(await send(path, null), 400, 'bucket-required')
    await expectProblem(await send(path, 'nobody'), 404, 'bucket-unknown')
  }
  const totals = await Promise.all(
    [one, other].map(async ({ name }) => Object(await (await send('/api/media', name)).json()).total),
  )
  expect(totals).toEqual([1, 0])
})

test('ST3 a token of a bucket may name its bucket, and no other', async () => {
  const [one, other] = [await bucketWith(server), await bucketWith(server)]
  const { authorization } = one
  const list = (bucket: string) =>
    server.request('/api/media', { headers: { authorization, 'mediabucket-bucket': bucket } })
  expect((await list(one.name)).status).toBe(200)
  for (const name of [other.name, 'nobody', '', `${one.name}, ${one.name}`])
    await expectProblem(await list(name), 403, 'bucket-forbidden')
})

test('ST5 GET /api/token describes a service token, without a bucket', async () => {
  const { authorization, id } = await makeServiceToken('buckets:manage', 'media:read')
  const describe = () => server.request('/api/token', { headers: { authorization } })
  expect(await (await describe()).json()).toEqual({
    ...{ id, name: 'shop', bucket: null, scopes: ['buckets:manage', 'media:read'] },
    ...{ created_at: expect.any(String), expires_at: null, note: null },
    ...{ limits: null, uploaded: null, left: null },
  })
  await runHere(server.data, 'token revoke', id)
  await expectProblem(await describe(), 401, 'token-revoked')
})
