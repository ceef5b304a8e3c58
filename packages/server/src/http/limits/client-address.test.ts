import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createClientAddresses } from './client-address.ts'

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
  const addresses = createClientAddresses(proxies)
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
