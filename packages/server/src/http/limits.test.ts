import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ClientAddresses, RateLimit } from './limits.ts'

/** A limit on a clock that the test moves. */
function limitAt(requests: number, window: number, keys?: number) {
  const clock = { at: 1000 }
  const limit = new RateLimit({ requests, window }, () => clock.at, keys)
  return { clock, take: (key: string) => limit.take(key) }
}

const accepted = (take: (key: string) => number, key: string, tries: number) =>
  Array.from({ length: tries }, () => take(key)).filter((wait) => wait === 0).length

test('W2 a limit accepts all its requests at once, and the next one after its share of the window', () => {
  const { clock, take } = limitAt(10, 5000)
  expect(accepted(take, 'a', 12)).toBe(10)
  expect(take('a')).toBeCloseTo(500)
  clock.at += 499
  expect(take('a')).toBeGreaterThan(0)
  clock.at += 1
  expect(take('a')).toBe(0)
  expect(take('a')).toBeCloseTo(500)
  clock.at += 5000
  expect(accepted(take, 'a', 12)).toBe(10)
})

test('W2 keys are counted separately', () => {
  const { take } = limitAt(2, 1000)
  expect([accepted(take, 'a', 5), accepted(take, 'b', 5)]).toEqual([2, 2])
})

test('W2 in any period no more requests are accepted than the limit and its refill, and refused ones do not count', () => {
  fc.assert(
    fc.property(
      fc.record({
        requests: fc.integer({ min: 1, max: 50 }),
        window: fc.integer({ min: 1, max: 60 }).map((seconds) => seconds * 1000),
        steps: fc.array(fc.nat({ max: 5000 }), { maxLength: 300 }),
      }),
      ({ requests, window, steps }) => {
        const { clock, take } = limitAt(requests, window)
        let taken = 0
        for (const step of steps) {
          clock.at += step
          const wait = take('a')
          if (wait === 0) taken += 1
          // A request after the returned time is always accepted.
          else expect(limitedUntil(clock.at + wait, steps, requests, window)).toBe(true)
        }
        expect(taken).toBeLessThanOrEqual(requests + ((clock.at - 1000) * requests) / window + 1e-6)
      },
    ),
  )

  function limitedUntil(at: number, steps: readonly number[], requests: number, window: number): boolean {
    const { clock, take } = limitAt(requests, window)
    for (const step of steps) {
      if (clock.at + step >= at) break
      clock.at += step
      take('a')
    }
    clock.at = at
    return take('a') === 0
  }
})

test('W6 memory is limited: unused keys are dropped, used ones stay', () => {
  const { take } = limitAt(2, 1_000_000, 100)
  expect(accepted(take, 'busy', 5)).toBe(2)
  expect(accepted(take, 'idle', 5)).toBe(2)
  for (let i = 0; i < 1000; i += 1) {
    take(`other ${i}`)
    if (i % 50 === 0) expect(take('busy')).toBeGreaterThan(0)
  }
  expect(take('idle')).toBe(0)
})

test('W6 a used key stays if its own request starts a new generation', () => {
  const { take } = limitAt(1, 1_000_000, 1)
  expect(take('a')).toBe(0)
  expect(take('b')).toBe(0)
  expect(take('a')).toBeGreaterThan(0)
})

test('O11 requests that another process accepted count, also beyond the quota', () => {
  let at = 0
  const limit = new RateLimit({ requests: 10, window: 10_000 }, () => at)
  limit.add('a', 9)
  expect(limit.take('a')).toBe(0)
  expect(limit.take('a')).toBeCloseTo(1_000)
  // Two processes accepted 15 requests at once: five more than the quota are waited for.
  limit.add('a', 5)
  expect(limit.take('a')).toBeCloseTo(6_000)
  at = 6_000
  expect(limit.take('a')).toBe(0)
})

/** Requests as Node parses them, over real sockets from 127.0.0.1. */
const server = createServer()
let url = ''
beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
})
afterAll(() => {
  server.close()
})

async function addressOf(proxies: readonly string[], headers: Record<string, string>) {
  const addresses = new ClientAddresses(proxies, null)
  let found = ''
  server.once('request', (request: IncomingMessage, response) => {
    found = addresses.ofRequest(request)
    response.end(String(addresses.ofConnection(request.socket)))
  })
  const ofConnection = await (await fetch(url, { headers })).text()
  return { found, ofConnection }
}

test.each([
  ['203.0.113.7', '127.0.0.1'],
  ['', '127.0.0.1'],
])('W1 without trusted proxies X-Forwarded-For %j is ignored', async (header, expected) => {
  const { found, ofConnection } = await addressOf([], { 'x-forwarded-for': header })
  expect(found).toBe(expected)
  expect(ofConnection).toBe('127.0.0.1')
})

test('W1 a peer other than a trusted proxy is the client, whatever headers it sends', async () => {
  const { found } = await addressOf(['10.0.0.0/8'], { 'x-forwarded-for': '203.0.113.7' })
  expect(found).toBe('127.0.0.1')
})

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['198.51.100.1, 203.0.113.7', '203.0.113.7'],
  ['198.51.100.1,203.0.113.7,10.0.0.1 , 10.0.0.2', '203.0.113.7'],
  ['10.0.0.1, 10.0.0.2', '10.0.0.1'],
  ['no address, 203.0.113.7', '203.0.113.7'],
  ['203.0.113.7:4711', '203.0.113.7'],
  ['[2001:db8:0:1::5]:4711', '2001:db8:0:1::/64'],
  ['[2001:db8:0:1::5]', '2001:db8:0:1::/64'],
  ['2001:db8:0:1:ffff::9', '2001:db8:0:1::/64'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
])('W1 behind a trusted proxy X-Forwarded-For %j is the client %s', async (header, expected) => {
  const { found, ofConnection } = await addressOf(['loopback', '10.0.0.0/8'], { 'x-forwarded-for': header })
  expect(found).toBe(expected)
  expect(ofConnection).toBe('null')
})

test.each([
  '203.0.113.7, no address',
  '203.0.113.7,',
  ',',
  '203.0.113.7, , 10.0.0.1',
  'unknown',
  '203.0.113',
  '1.2.3.4:99999999',
  '[203.0.113.7',
  '203.0.113.7; drop',
])('W1 X-Forwarded-For %j is malformed, so the peer is the client', async (header) => {
  expect((await addressOf(['loopback', '10.0.0.0/8'], { 'x-forwarded-for': header })).found).toBe('127.0.0.1')
})

test('W1 Forwarded is ignored', async () => {
  expect((await addressOf(['loopback'], { forwarded: 'for=203.0.113.7' })).found).toBe('127.0.0.1')
})
