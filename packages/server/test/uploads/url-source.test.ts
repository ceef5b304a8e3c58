import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { privateHosts, startNameServer } from '../../../../test/harness/name-server.ts'
import { Fault } from '../../src/core/faults.ts'
import { AddressGuard, createNameResolver } from '../../src/http/address-guard.ts'
import { openUrl, parseSourceUrl } from '../../src/uploads/url-source.ts'

const unresolved = createNameResolver()

function guardOf(parts: Partial<ConstructorParameters<typeof AddressGuard>[0]> = {}) {
  return new AddressGuard({ isPublicAllowed: true, allowed: [], resolveName: unresolved, ...parts })
}

async function startSource(listener: RequestListener): Promise<{ port: number; server: Server }> {
  const server = createServer(listener)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, server }
}

/** A server that sends these bytes after the head of the request, and then does as it likes. */
async function startRaw(respond: (socket: Socket) => void): Promise<number> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => respond(socket))
    onTestFinished(() => void socket.destroy())
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

const never = new AbortController().signal

async function open(url: string, guard = guardOf({ allowed: ['127.0.0.1'] }), signal = never) {
  const parsed = parseSourceUrl(url)
  if (parsed === null) throw new TypeError(`${url} is not accepted`)
  const source = await openUrl(guard, parsed, signal)
  onTestFinished(() => source.close())
  return source
}

const readAll = async (url: string, ...more: [AddressGuard?, AbortSignal?]) =>
  buffer((await open(url, ...more)).body)

/** The code and the status of the other side of the fault of a promise. */
const faultOf = async (promise: Promise<unknown>) =>
  promise.then(
    () => ['none'],
    (error: unknown) =>
      error instanceof Fault ? [error.code, error.members.source_status] : [`unexpected ${error}`],
  )

test('FU3 addresses of no public network are refused in every notation and on every port, and receive no connection', async () => {
  let connections = 0
  const { port, server } = await startSource((_request, response) => response.end('secret'))
  server.on('connection', () => {
    connections += 1
  })
  for (const host of privateHosts)
    for (const at of ['', `:${port}`, ':22'])
      expect([host, await faultOf(open(`http://${host}${at}/`, guardOf()))]).toEqual([
        host,
        ['source-refused', undefined],
      ])
  expect(connections).toBe(0)
})

test('FU3 only the addresses of the setting can be requested: without `public`, none of the public internet', async () => {
  const { port } = await startSource((_request, response) => response.end('yes'))
  const guard = guardOf({ isPublicAllowed: false, allowed: ['127.0.0.0/8'] })
  expect(`${await readAll(`http://127.0.0.1:${port}/`, guard)}`).toBe('yes')
  for (const host of ['93.184.215.14', '[2606:2800:21f:cb07:6820:80da:af6b:8b2c]', '10.0.0.1', '[::1]'])
    expect(await faultOf(open(`http://${host}/`, guard))).toEqual(['source-refused', undefined])
})

test('FU3 a name with a public and a private address is refused, and one without an address has failed', async () => {
  const answers = new Map([
    ['both.example', ['93.184.215.14', '10.0.0.1']],
    ['mapped.example', ['::ffff:10.0.0.1']],
    ['metadata.example', ['169.254.169.254']],
  ])
  const guard = guardOf({ resolveName: async (name) => answers.get(name) ?? [] })
  for (const name of answers.keys())
    expect(await faultOf(open(`https://${name}/`, guard))).toEqual(['source-refused', undefined])
  expect(await faultOf(open('https://none.example/', guard))).toEqual(['source-failed', undefined])
})

test('FU3 a name is looked up once for each request, and the request goes to the address that was checked', async () => {
  const { port } = await startSource((request, response) => response.end(request.headers.host))
  const { resolveName, queries } = await startNameServer(['127.0.0.1', '10.0.0.1'])
  const guard = guardOf({ allowed: ['127.0.0.1'], resolveName })
  expect(`${await readAll(`http://rebind.example:${port}/`, guard)}`).toBe(`rebind.example:${port}`)
  expect(queries()).toBe(1)
  expect(await faultOf(open(`http://rebind.example:${port}/`, guard))).toEqual(['source-refused', undefined])
})

test('FU3, FU4 each redirect is checked again: its address, its protocol, and that it has no password', async () => {
  let requests = 0
  const { port } = await startSource((request, response) => {
    requests += 1
    const to = decodeURIComponent(request.url?.slice(1) ?? '')
    if (to === 'end') response.end('moved')
    else response.writeHead(302, { location: to, 'set-cookie': 'a=b' }).end()
  })
  const base = `http://127.0.0.1:${port}/`
  expect(`${await readAll(`${base}${encodeURIComponent(`${base}end`)}`)}`).toBe('moved')
  expect(`${await readAll(`${base}${encodeURIComponent('/end')}`)}`).toBe('moved')
  const before = requests
  const refused = [
    ...privateHosts
      .filter((host) => !/127\.0\.0\.1|^127\.1$|7f|^2130706433$|^0177|localhost/i.test(host))
      .map((host) => `http://${host}/`),
    ...[
      'file:///etc/passwd',
      'ftp://example.org/',
      'data:text/plain,x',
      'gopher://x/',
      'http://a:b@example.org/',
    ],
    '//169.254.169.254/latest/meta-data/',
  ]
  for (const to of refused)
    expect([to, await faultOf(open(`${base}${encodeURIComponent(to)}`))]).toEqual([
      to,
      ['source-refused', undefined],
    ])
  expect(requests).toBe(before + refused.length)
  const { port: long } = await startSource((_request, response) =>
    response.writeHead(302, { location: `http://example.org/${'x'.repeat(2_100)}` }).end(),
  )
  expect(await faultOf(open(`http://127.0.0.1:${long}/`))).toEqual(['source-refused', undefined])
  const { port: looping } = await startSource((_request, response) =>
    response.writeHead(307, { location: '/' }).end(),
  )
  expect(await faultOf(open(`http://127.0.0.1:${looping}/`))).toEqual(['source-failed', undefined])
})

test('FU4 a request has no credentials, no cookies and no proxy of the environment', async () => {
  const seen: object[] = []
  const { port } = await startSource((request, response) => {
    seen.push({ ...request.headers })
    response.end('x')
  })
  process.env['http_proxy'] = 'http://127.0.0.1:1'
  onTestFinished(() => void delete process.env['http_proxy'])
  await readAll(`http://127.0.0.1:${port}/a#fragment`)
  expect(seen).toEqual([
    {
      host: `127.0.0.1:${port}`,
      'user-agent': expect.stringMatching(/^mediabucket\/\d/),
      accept: '*/*',
      'accept-encoding': 'identity',
      connection: 'close',
    },
  ])
})

test('FU4, FU5 every status but 200 and 203 is a problem with that status and without its body', async () => {
  const { port } = await startSource((request, response) => {
    const status = Number(request.url?.slice(1))
    response
      .writeHead(status, { 'content-type': 'text/plain' })
      .end(status === 204 ? undefined : 'a secret of the other side')
  })
  expect(`${await readAll(`http://127.0.0.1:${port}/203`)}`).toContain('secret')
  for (const status of [204, 206, 226, 300, 304, 305, 400, 401, 403, 404, 410, 429, 500, 503, 999]) {
    const failure = open(`http://127.0.0.1:${port}/${status}`)
    expect(await faultOf(failure)).toEqual(['source-failed', status])
    await expect(failure).rejects.toThrow(/^(?!.*secret)/)
  }
})

test('FU5 bodies of every kind are read whole or fail', async () => {
  const text = 'x'.repeat(100_000)
  const head = 'HTTP/1.1 200 OK\r\n'
  const cases: readonly (readonly [name: string, respond: (socket: Socket) => void, string | null])[] = [
    ['with a length', (socket) => socket.end(`${head}Content-Length: ${text.length}\r\n\r\n${text}`), text],
    [
      'chunked',
      (socket) =>
        socket.end(
          `${head}Transfer-Encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`,
        ),
      text,
    ],
    ['up to the end of the connection', (socket) => socket.end(`${head}\r\n${text}`), text],
    ['of HTTP/1.0', (socket) => socket.end(`HTTP/1.0 200 OK\r\n\r\n${text}`), text],
    ['with more than its length', (socket) => socket.end(`${head}Content-Length: 3\r\n\r\nabcdef`), 'abc'],
    ['with a shorter body', (socket) => socket.end(`${head}Content-Length: 100001\r\n\r\n${text}`), null],
    [
      'reset in the middle',
      (socket) =>
        socket.write(`${head}Content-Length: 200000\r\n\r\n${text}`, () => socket.resetAndDestroy()),
      null,
    ],
    [
      'with chunks that end early',
      (socket) => socket.end(`${head}Transfer-Encoding: chunked\r\n\r\nffff\r\n${text.slice(0, 100)}`),
      null,
    ],
    [
      'with two lengths',
      (socket) => socket.end(`${head}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd`),
      null,
    ],
    [
      'with length and chunks',
      (socket) =>
        socket.end(`${head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`),
      null,
    ],
    ['with no HTTP', (socket) => socket.end('220 mail.example ESMTP\r\n'), null],
    ['with a head without end', (socket) => socket.write(`${head}X: ${'x'.repeat(40_000)}`), null],
    [
      'upgraded',
      (socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'),
      null,
    ],
    ['closed at once', (socket) => socket.end(), null],
  ]
  for (const [name, respond, expected] of cases) {
    const reading = readAll(`http://127.0.0.1:${await startRaw(respond)}/`)
    if (expected === null)
      expect([name, await faultOf(reading)]).toEqual([name, ['source-failed', undefined]])
    else expect([name, `${await reading}` === expected]).toEqual([name, true])
  }
})

test('FU5 a file with a Content-Encoding is refused, and its bytes are not expanded', async () => {
  const { port } = await startSource((_request, response) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('x'.repeat(1_000_000))),
  )
  expect(await faultOf(open(`http://127.0.0.1:${port}/`))).toEqual(['source-failed', 200])
  await expect(open(`http://127.0.0.1:${port}/`)).rejects.toThrow(
    'The server of the URL sent the file with a Content-Encoding.',
  )
})

test.each(['gzip', 'gzip, chunked', 'chunked, gzip'])(
  'FU5 a file with the Transfer-Encoding %s is refused: its bytes are not those of the file',
  async (coding) => {
    const bytes = gzipSync('a file')
    const body = [`${bytes.length.toString(16)}\r\n`, bytes, '\r\n0\r\n\r\n']
    const port = await startRaw((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: ${coding}\r\n\r\n`)
      for (const part of coding.endsWith('chunked') ? body : [bytes]) socket.write(part)
      socket.end()
    })
    expect((await faultOf(readAll(`http://127.0.0.1:${port}/`)))[0]).toBe('source-failed')
  },
)

test('FU5 the reason says what is wrong with a server that speaks no TLS, and with one that speaks no HTTP', async () => {
  const port = await startRaw((socket) => socket.write('hello\r\n\r\n'))
  await expect(open(`http://127.0.0.1:${port}/`)).rejects.toThrow('a response that is not valid HTTP (HPE_')
  await expect(open(`https://127.0.0.1:${port}/`)).rejects.toThrow('agreed on no TLS connection (EPROTO)')
})

test('FU5 a server that does not respond, and one that sends too slowly, takes 15 seconds', {
  timeout: 60_000,
}, async () => {
  const silent = await startRaw(() => undefined)
  const informing = await startRaw((socket) => {
    const timer = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'), 100)
    socket.once('close', () => clearInterval(timer))
  })
  const dripping = await startRaw((socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    const timer = setInterval(() => socket.write('.'), 100)
    socket.once('close', () => clearInterval(timer))
  })
  const paused = await startRaw((socket) => socket.write(`HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(100_000)}`))
  const faults = await Promise.all(
    [silent, informing, dripping, paused].map((port) => faultOf(readAll(`http://127.0.0.1:${port}/`))),
  )
  expect(faults).toEqual(Array(4).fill(['source-timeout', undefined]))
})

test('FU5 an abort ends a request at each step with its reason', async () => {
  const reason = new Error('the client has gone')
  const unanswered = guardOf({ resolveName: () => new Promise(() => undefined) })
  const silent = await startRaw(() => undefined)
  const paused = await startRaw((socket) => socket.write('HTTP/1.1 200 OK\r\n\r\nx'))
  for (const [url, guard] of [
    ['http://name.example/', unanswered],
    [`http://127.0.0.1:${silent}/`, undefined],
    [`http://127.0.0.1:${paused}/`, undefined],
  ] as const) {
    const gone = new AbortController()
    const reading = readAll(url, guard, gone.signal)
    setImmediate(() => gone.abort(reason))
    await expect(reading).rejects.toBe(reason)
  }
})

test.each([
  ['/a/photo.jpg?x=1', undefined, 'photo.jpg'],
  ['/a/b%C3%A4r.png', undefined, 'bär.png'],
  ['/%zz', undefined, '%zz'],
  ['/', undefined, null],
  ['/a/..%2f..%2fetc%2fpasswd', undefined, 'passwd'],
  ['/get', 'attachment; filename="report.pdf"', 'report.pdf'],
  ['/get', "attachment; filename*=UTF-8''%e2%82%ac.txt", '€.txt'],
  ['/get', 'attachment; filename="../../x/y.txt"', 'y.txt'],
  ['/get.bin', 'attachment; filename=', 'get.bin'],
])('FU2 the name of %s with %s is %s', async (path, disposition, expected) => {
  const { port } = await startSource((_request, response) => {
    if (disposition !== undefined) response.setHeader('content-disposition', disposition)
    response.writeHead(200, { 'content-type': 'text/x-test', 'content-length': 2 }).end('ab')
  })
  const { filename, contentType, length } = await open(`http://127.0.0.1:${port}${path}`)
  expect({ filename, contentType, length }).toEqual({
    filename: expected,
    contentType: 'text/x-test',
    length: 2,
  })
})
