import { execFile } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryDirectory } from '../../../../test/harness/directory.ts'
import { privateHosts, startNameServer } from '../../../../test/harness/name-server.ts'
import { canMount } from '../../../../test/harness/small-disk.ts'
import { createNameResolver } from '../../src/http/address-guard.ts'
import { createPoster } from '../../src/webhooks/guarded-post.ts'

const refused = /The host has an address that webhooks must not call/

async function startReceiver(listener: RequestListener): Promise<number> {
  const server = createServer(listener)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return port
}

function postTo(parts: Partial<Parameters<typeof createPoster>[0]>) {
  const connection = createPoster({ allowed: [], ...parts }).open()
  onTestFinished(() => connection.close())
  return (url: string, signal = new AbortController().signal) => connection.post(url, {}, '{}', signal)
}

test('WH9 addresses of no public network are refused in every notation, and receive no connection', async () => {
  let connections = 0
  const port = await startReceiver((_request, response) => {
    connections += 1
    response.end()
  })
  const post = postTo({})
  for (const host of privateHosts)
    expect([host, (await post(`http://${host}:${port}/`)).reason]).toEqual([
      host,
      expect.stringMatching(refused),
    ])
  expect(connections).toBe(0)
})

test('WH9 a range that is allowed can be called, and others cannot', async () => {
  const port = await startReceiver((_request, response) => response.writeHead(202).end('yes'))
  const post = postTo({ allowed: ['127.0.0.0/8'] })
  expect(await post(`http://0x7f.1:${port}/`)).toMatchObject({ status: 202, reason: null, response: 'yes' })
  expect(await post(`http://[::ffff:127.0.0.1]:${port}/`)).toMatchObject({ status: 202 })
  expect((await post(`http://10.0.0.1:${port}/`)).reason).toMatch(refused)
  expect((await post(`http://[::1]:${port}/`)).reason).toMatch(refused)
})

test('WH9 a name is looked up once for each request, and the request goes to that address', async () => {
  const port = await startReceiver((request, response) => response.end(request.headers.host))
  const { resolveName, queries } = await startNameServer(['127.0.0.2', '10.0.0.1'])
  const post = postTo({ allowed: ['127.0.0.2'], resolveName })
  // The receiver listens at another address than that of the first answer.
  expect(await post(`http://rebind.example:${port}/`)).toMatchObject({
    reason: 'The request failed with ECONNREFUSED.',
  })
  expect(queries()).toBe(1)
  expect((await post(`http://rebind.example:${port}/`)).reason).toMatch(refused)
  const second = await startNameServer(['127.0.0.1', '10.0.0.1'])
  const next = postTo({ allowed: ['127.0.0.1'], resolveName: second.resolveName })
  expect(await next(`http://rebind.example.:${port}/`)).toMatchObject({
    status: 200,
    response: `rebind.example.:${port}`,
  })
  expect(second.queries()).toBe(1)
})

test('WH9 a name with a public and a private address is refused, and so is one without', async () => {
  const answers = new Map([
    ['both.example', ['93.184.215.14', '10.0.0.1']],
    ['mapped.example', ['::ffff:10.0.0.1']],
  ])
  const post = postTo({ resolveName: async (name) => answers.get(name) ?? [] })
  expect((await post('https://both.example/')).reason).toMatch(refused)
  expect((await post('https://mapped.example/')).reason).toMatch(refused)
  expect((await post('https://none.example/')).reason).toBe('The host name has no address.')
})

test('WH9 no proxy of the environment is used, and a connection that the receiver has closed is opened again', async () => {
  let requests = 0
  const port = await startReceiver((request, response) => {
    requests += 1
    response.end('ok', () => request.socket.destroy())
  })
  process.env['http_proxy'] = 'http://127.0.0.1:1'
  onTestFinished(() => void delete process.env['http_proxy'])
  const post = postTo({ allowed: ['127.0.0.1'] })
  for (const _ of [1, 2, 3])
    expect(await post(`http://127.0.0.1:${port}/`)).toMatchObject({ status: 200, reason: null })
  expect(requests).toBe(3)
})

test('WH6 a response 101 is a failure, and so is a connection that is closed without a response', async () => {
  const port = await startReceiver(({ socket, url }) => {
    const upgrade = url === '/upgrade' ? 'Connection: upgrade\r\nUpgrade: websocket\r\n' : ''
    if (url === '/none') socket.end()
    else socket.write(`HTTP/1.1 101 Switching Protocols\r\n${upgrade}\r\n`)
  })
  const post = postTo({ allowed: ['127.0.0.1'] })
  const failed = { status: 101, reason: 'The receiver responded with 101.' }
  expect(await post(`http://127.0.0.1:${port}/upgrade`)).toMatchObject(failed)
  expect(await post(`http://127.0.0.1:${port}/plain`)).toMatchObject(failed)
  expect(await post(`http://127.0.0.1:${port}/none`)).toMatchObject({ status: null })
})

test('WH6, WH9 a receiver that does not respond, or whose name server does not, takes 15 seconds, and a body without an end one', {
  timeout: 40_000,
}, async () => {
  const port = await startReceiver((request, response) => {
    if (request.url !== '/') response.write('half')
    if (request.url === '/dripping') setInterval(() => response.write('.'), 100).unref()
  })
  const silent = createSocket('udp4')
  await new Promise<void>((done) => silent.bind(0, '127.0.0.1', done))
  onTestFinished(() => void silent.close())
  const lost = postTo({ resolveName: createNameResolver([`127.0.0.1:${silent.address().port}`]) })
  const post = postTo({ allowed: ['127.0.0.1'] })
  const stopping = new AbortController()
  const [none, half, dripping, name, aborted] = await Promise.all([
    post(`http://127.0.0.1:${port}/`),
    post(`http://127.0.0.1:${port}/half`),
    post(`http://127.0.0.1:${port}/dripping`),
    lost('http://silent.example/'),
    post(`http://127.0.0.1:${port}/`, AbortSignal.any([stopping.signal, AbortSignal.timeout(50)])),
  ])
  expect(none).toMatchObject({ status: null, reason: 'There was no response within 15 seconds.' })
  expect(none?.duration).toBeGreaterThanOrEqual(14_900)
  // The status has arrived.
  expect(half).toMatchObject({ status: 200, reason: null, response: 'half' })
  expect(dripping).toMatchObject({ status: 200, reason: null, response: expect.stringMatching(/^half\.+$/) })
  for (const one of [half, dripping]) expect(one?.duration).toBeLessThan(10_000)
  expect(name?.status).toBeNull()
  expect(aborted).toMatchObject({ status: null })
  expect(aborted?.duration).toBeLessThan(5_000)
})

test.skipIf(process.env['CI'] === undefined && !(await canMount()))(
  'WH9 name servers that change are used from the next request on',
  async () => {
    const servers = ['127.0.53.1', '127.0.53.2']
    for (const address of servers) await startNameServer([address], { port: 53, address })
    const source = new URL('../../src/http/address-guard.ts', import.meta.url)
    const script = `
      import { writeFileSync } from 'node:fs'
      import { createNameResolver } from ${JSON.stringify(source)}
      const resolveName = createNameResolver()
      for (const server of ${JSON.stringify([...servers, ...servers])}) {
        writeFileSync('/etc/resolv.conf', 'nameserver ' + server)
        console.log((await resolveName('receiver.example')).join())
      }`
    await using directory = await temporaryDirectory()
    const file = join(directory.path, 'resolv.conf')
    await writeFile(file, '')
    // In a mount namespace of its own, so that the machine keeps its name servers.
    const { stdout } = await promisify(execFile)('unshare', [
      ...['-m', 'sh', '-c', 'mount --bind "$1" /etc/resolv.conf && shift && exec "$@"', 'sh', file],
      ...[process.execPath, '--input-type=module', '-e', script],
    ])
    expect(stdout.trim().split('\n')).toEqual([...servers, ...servers])
  },
)
