import { randomUUID } from 'node:crypto'
import type { TestServer } from './server.ts'
import { makeToken } from './token.ts'
import { tusOf } from './tus.ts'

/** A new bucket, held to these limits where any are given, and a token of it. */
export async function bucketWith(server: TestServer, ...limits: string[]) {
  const name = randomUUID()
  const { authorization, id } = await makeToken(server, '--bucket', name)
  if (limits.length > 0) await server.command('bucket', 'set', name, ...limits)
  const state = async (): Promise<unknown> =>
    (await server.request('/api/bucket', { headers: { authorization } })).json()
  return { name, authorization, tokenId: id, tus: tusOf(server, authorization), state }
}
