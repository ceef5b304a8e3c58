import { beforeAll, expect, test } from 'vitest'
import { type Client, createClient, type ManagedToken } from '../../packages/client/src/index.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'

let server: SharedServer
let manager: Client
beforeAll(async () => {
  server = await sharedServer()
  const scopes = ['--scope', 'tokens:manage', '--scope', 'media:read']
  const { token } = await makeToken(server, '--bucket', server.bucket, '--name', 'manager', ...scopes)
  manager = createClient({ url: server.url, token })
})

async function listOf(client: Client): Promise<ManagedToken[]> {
  const tokens: ManagedToken[] = []
  for await (const token of client.tokens.list()) tokens.push(token)
  return tokens
}

const namesOf = async (client: Client) => (await listOf(client)).map(({ name }) => name)

test('T4, T6, T7, T8 a client creates, lists, replaces and revokes tokens', async () => {
  const expiresAt = new Date(Date.now() + 86_400_000)
  const created = await manager.tokens.create({ name: 'app', scopes: ['media:read'], expiresAt })
  const app = createClient({ url: server.url, token: created.token })
  const { token: _, ...properties } = created
  expect(await app.whoami()).toEqual(properties)
  expect(properties.expires_at).toBe(expiresAt.toISOString())

  const successor = await manager.tokens.rotate(created.id, { overlapSeconds: 60, expiresAt: null })
  expect(successor).toMatchObject({ name: 'app', scopes: ['media:read'], expires_at: null })
  await app.listPage(1)
  await manager.tokens.revoke(created.id)
  await expect(app.listPage(1)).rejects.toMatchObject({ status: 401 })
  await createClient({ url: server.url, token: successor.token }).listPage(1)

  expect((await namesOf(manager)).slice(-3)).toEqual(['manager', 'app', 'app'])
  const [, revoked] = (await listOf(manager)).slice(-3)
  expect([revoked?.id, revoked?.revoked_at]).toEqual([created.id, expect.any(String)])
  await expect(manager.tokens.revoke('a/b')).rejects.toMatchObject({ status: 404 })
})

test('T4 a client lists more tokens than one response has', async () => {
  for (let count = 0; count < 501; count += 1)
    await manager.tokens.create({ name: `${count}`, scopes: ['media:read'] })
  expect((await namesOf(manager)).slice(-501)).toEqual(Array.from({ length: 501 }, (_, index) => `${index}`))
})
