import { expect, test } from 'vitest'
import { createClient } from '../../packages/client/src/index.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'

test('WH1, WH2, WH3, WH10 a client manages webhooks', async () => {
  const server = await sharedServer()
  const { token } = await makeToken(server, '--bucket', server.bucket, '--scope', 'webhooks:manage')
  const { webhooks } = createClient({ url: server.url, token })
  const { secret, ...created } = await webhooks.create({ url: 'https://example.org/hooks', kinds: ['added'] })
  expect(secret).toMatch(/^whsec_/)
  expect(created).toMatchObject({ url: 'https://example.org/hooks', kinds: ['added'], batch: 1, state: 'on' })
  expect(await webhooks.list()).toEqual([created])
  // The host is not called.
  const refused = { url: 'http://receiver.invalid', batch: 20, state: 'off' } as const
  expect(await webhooks.update(created.id, refused)).toMatchObject({
    batch: 20,
    state: 'off',
    kinds: ['added'],
  })
  const rotated = await webhooks.rotate(created.id, { overlapSeconds: 60 })
  expect(rotated.secret).not.toBe(secret)
  const tested = await webhooks.test(created.id)
  expect(tested).toMatchObject({ type: 'webhook.test', delivered: false, status: null, requested: true })
  const again = await webhooks.redeliver(created.id, tested.number)
  expect(again.message_id).toBe(tested.message_id)
  expect(await webhooks.deliveries(created.id)).toEqual([again, tested])
  await webhooks.delete(created.id)
  expect(await webhooks.list()).toEqual([])
  await expect(webhooks.test('a/b')).rejects.toMatchObject({ status: 404 })
})
