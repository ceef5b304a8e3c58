import { createClient } from '@mediabucket/client'
import { expect, test } from 'vitest'
import { sharedServer } from '../../../test/harness/shared-server.ts'
import { makeToken } from '../../../test/harness/token.ts'
import type { Connection } from '../src/service/connection.ts'
import { createWebhooks } from '../src/webhooks/webhooks.ts'

test('G38 a webhook that somebody else has deleted leaves the list when it is deleted or tested', async () => {
  const server = await sharedServer()
  const { token } = await makeToken(server, '--bucket', server.bucket, '--scope', 'webhooks:manage')
  const client = createClient({ url: server.url, token })
  const connection: Pick<Connection, 'watch'> = { watch: (request) => request() }
  const webhooks = createWebhooks(client, connection)
  for (const use of ['remove', 'test'] as const) {
    await webhooks.create({ url: 'https://example.com/hook' })
    const [webhook] = webhooks.items.peek() ?? []
    if (webhook === undefined) throw new Error('no webhook')
    await webhooks.open(webhook.id)
    await client.webhooks.delete(webhook.id)
    await expect(webhooks[use](webhook.id), use).rejects.toMatchObject({ status: 404 })
    expect(webhooks.items.peek(), use).toEqual([])
    expect(webhooks.opened.peek(), use).toBeNull()
  }
})
