import { randomUUID } from 'node:crypto'
import { runHere } from './commands.ts'
import type { SharedServer } from './server.ts'
import { makeToken } from './token.ts'
import { tusOf } from './tus.ts'

/** A new bucket, with these limits if any are given, and a token for it. */
export async function bucketWith(server: SharedServer, ...limits: string[]) {
  const name = randomUUID()
  const { authorization, id } = await makeToken(server, '--bucket', name)
  if (limits.length > 0) await runHere(server.data, 'bucket set', name, ...limits)
  const state = async (): Promise<unknown> =>
    (await server.request('/api/bucket', { headers: { authorization } })).json()
  return { name, authorization, tokenId: id, tus: tusOf(server, authorization), state }
}
