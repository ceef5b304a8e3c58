import { expect, test } from 'vitest'
import { createClient } from '../../packages/client/src/index.ts'
import { freshMetrics } from '../harness/fresh-metrics.ts'
import { startServer } from '../harness/server.ts'

test('W5 above the rate limit the client waits for the time in Retry-After and does not fail', async () => {
  await using server = await startServer({ MEDIABUCKET_TOKEN_RATE: '3/1s' })
  const client = createClient({ url: server.url, token: server.token, retry: { delay: 10 } })
  const names = Array.from({ length: 8 }, (_, index) => `file ${index}`)
  // At the same time: one after the other, a busy machine may stay below the rate.
  await Promise.all(names.map((name) => client.upload(new File([name], name))))
  expect(await client.listPage(1)).toMatchObject({ total: 8 })
  const text = await freshMetrics(server.url)
  const limited = Number(/^mediabucket_limited_requests_total\{limit="token"\} (\d+)$/m.exec(text)?.[1])
  expect(limited).toBeGreaterThan(0)
})
