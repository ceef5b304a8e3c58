import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { sendRaw } from '../harness/raw-http.ts'
import { bin } from '../harness/server.ts'
import { type Started, startBy } from '../harness/started-by.ts'
import { needTools } from '../harness/tools.ts'
import { until } from '../harness/until.ts'
import { readItem } from '../harness/wire.ts'

/** A service with a terminal as its stdin, stdout and stderr. */
const startOnTerminal = (
  settings: Readonly<Record<string, string>> = {},
  listening = /curl .*\/api\/media\b/,
) => {
  needTools('script')
  return startBy(
    ['script', '-qfec', `${process.execPath} ${bin} serve`, '/dev/null'],
    { TERM: 'xterm-256color', ...settings },
    listening,
  )
}

const send = ({ url }: Started, path: string) =>
  sendRaw(url, Buffer.from(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`, 'latin1'))

/** Control characters, except those of colours and line ends. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it looks for them
const controls = /[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
const colours = /\x1b\[[\d;]*m/g

test('O10 on a terminal the service shows a banner and a line for each request, in colours, without JSON', {
  concurrent: true,
}, async () => {
  await using started = await startOnTerminal()
  const headers = { authorization: `Bearer ${started.token}` }
  const response = await fetch(`${started.url}/api/media`, { method: 'POST', headers, body: 'text' })
  const { id, url } = await readItem(response)
  await fetch(`${started.url}/no/such/path?secret=1`)
  await fetch(url)
  // Bytes that begin an escape sequence: 0x9b is \x1b[ in one byte.
  await send(started, '/\x9b31mred\x9b2J\x85next')
  await send(started, '/%1b[31m%0d%0aencoded')
  await until('the last is shown', () => started.output().includes('encoded'))

  const output = started.output()
  expect(output).toMatch(colours)
  const plain = output.replace(colours, '')
  expect(plain).toMatch(/^\d\d:\d\d:\d\d 201 POST {3}\/api\/media [\d.]+ ms\r$/m)
  expect(plain).toMatch(/^\d\d:\d\d:\d\d 404 GET {4}\/no\/such\/path [\d.]+ ms\r$/m)
  expect(plain).toContain('refused an invalid request')
  expect(plain).toContain(' /%1b[31m%0d%0aencoded ')
  expect(plain).not.toMatch(controls)
  expect(plain).not.toMatch(/"level"|secret/)
  expect(plain).toContain(`The catalog is ${started.data}/catalog.db.`)
  expect(plain).toContain(`Files are stored in ${started.data}`)
  expect(plain.split(started.token).length).toBe(4)
  expect(plain).toContain(`/media/${id}`)
  started.process.stdin?.write('\x03')
  await until('Ctrl-C stops it', () => started.output().includes('stopped'))
})

test('O10 NO_COLOR takes the colours away', { concurrent: true }, async () => {
  await using started = await startOnTerminal({ NO_COLOR: '1' })
  await send(started, '/some/path')
  await until('it is shown', () => started.output().includes('/some/path'))
  expect(stripVTControlCharacters(started.output())).toBe(started.output())
})

test('O10 MEDIABUCKET_LOG_FORMAT=json is JSON on a terminal too', { concurrent: true }, async () => {
  await using started = await startOnTerminal({ MEDIABUCKET_LOG_FORMAT: 'json' }, /"msg":"listening"/)
  await send(started, '/some/path')
  const line = await until('it is logged', () => /^\{.*"\/some\/path".*\}\r$/m.exec(started.output())?.[0])
  expect(JSON.parse(line)).toMatchObject({ level: 30, method: 'GET', status: 404 })
})

test('O10 MEDIABUCKET_LOG_FORMAT=text prints text without colours where there is no terminal', async () => {
  await using server = await startBy(
    [process.execPath, bin, 'serve'],
    { MEDIABUCKET_LOG_FORMAT: 'text', MEDIABUCKET_OWN: 'x' },
    /curl/,
  )
  const hidden = (
    await readItem(
      await fetch(`${server.url}/api/media`, {
        method: 'POST',
        headers: { authorization: `Bearer ${server.token}` },
        body: 'x'.repeat(200_000),
      }),
    )
  ).id
  await rm(join(server.data, 'blobs', hidden.slice(0, 2), hidden))
  await fetch(`${server.url}/media/${hidden}`)
  await until('the request is logged', () => / 500 GET /.test(server.output()))
  const output = server.output()
  expect(output).toMatch(/^\d\d:\d\d:\d\d warning: MEDIABUCKET_OWN is not a setting/m)
  // The cause of an error, with its stack on separate lines.
  expect(output).toMatch(/^\d\d:\d\d:\d\d error: .*\n {4}\S/m)
  expect(output).not.toContain('"level"')
  expect(stripVTControlCharacters(output)).toBe(output)
})

test('O3 while a terminal shows nothing more, requests are answered', async () => {
  await using started = await startOnTerminal()
  started.process.stdout?.pause()
  for (let index = 0; index < 2_000; index += 1) await fetch(`${started.url}/${'x'.repeat(1_000)}`)
  expect((await fetch(`${started.url}/healthz`)).status).toBe(200)
})
