import { type Client, createClient } from '@mediabucket/client'
import { expect, test } from 'vitest'
import { runHere } from '../../../test/harness/commands.ts'
import { sharedServer } from '../../../test/harness/shared-server.ts'
import type { Connection } from '../src/service/connection.ts'
import { loadTexts, strings } from '../src/strings.ts'
import { createTrash } from '../src/trash/trash.ts'

await loadTexts('trash')

/** The trash of a new bucket with two files in it. */
async function scene() {
  const server = await sharedServer()
  await runHere(server.data, 'bucket set', server.bucket, '--trash-days', '30')
  const client: Client = createClient({ url: server.url, token: server.token })
  const ids: string[] = []
  for (const text of ['one', 'two']) ids.push((await client.upload(Buffer.from(text))).id)
  await client.deleteMany(ids)
  const shown: string[] = []
  const connection: Pick<Connection, 'watch'> = { watch: (request) => request() }
  const trash = createTrash(client, connection, { show: (text) => shown.push(text) }, async () => {})
  return { client, ids, trash, shown }
}

test('G22 a file that somebody else has restored is not said to be deleted permanently', async () => {
  const { client, ids, trash, shown } = await scene()
  await client.restore(ids.slice(1))
  expect(await trash.deleteForGood(ids)).toBe(true)
  expect(shown).toEqual([strings.trash.deleted(1), strings.deleted.missing(1)])
  shown.length = 0
  await trash.deleteForGood(ids.slice(1))
  expect(shown).toEqual([strings.deleted.missing(1)])
})
