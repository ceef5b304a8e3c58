import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { listen } from '../client/foreign-service.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { seed } from '../harness/seed.ts'
import { startServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { listAll } from '../harness/upkeep.ts'
import { commandLine } from './client-run.ts'

/** A running command. */
function start(service: { url: string; token: string }, ...args: string[]) {
  const { command, env } = commandLine(service, ...args)
  const [file = '', ...rest] = command
  const child = spawn(file, rest, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const stderr = text(child.stderr)
  const exited = once(child, 'close').then(async ([code]) => ({ code, stderr: await stderr }))
  return { child, exited }
}

test('a reader that closes the output ends ls --all with exit code 0, and no further page is requested', async () => {
  await using server = await startServer()
  const { token } = await seed(server, '--items', '20000')
  const { child, exited } = start({ url: server.url, token }, 'ls', '--all')
  await once(child.stdout, 'data')
  child.stdout.destroy()
  expect(await exited).toEqual({ code: 0, stderr: '' })
  const listed = server.log().filter(({ path }) => path === '/api/media')
  expect(listed.length).toBeLessThan(2_000)
})

test('a reader that closes the output ends get with exit code 0', async () => {
  await using endless = await listen(async (_request, response) => {
    response.on('error', () => {})
    while (response.writable) if (!response.write(Buffer.alloc(65_536))) await once(response, 'drain')
  })
  const { child, exited } = start({ url: endless.url, token: 'x' }, 'get', 'some-id')
  await once(child.stdout, 'data')
  child.stdout.destroy()
  expect(await exited).toEqual({ code: 0, stderr: '' })
})

test('a reader that closes the output of upload and sync does not hide that a file was not uploaded', async () => {
  await using server = await startServer()
  await using directory = await temporaryDirectory()
  await writeFile(join(directory.path, 'a.txt'), 'a')
  await symlink('nowhere', join(directory.path, 'b.txt'))
  for (const [command, code] of [
    ['upload', 1],
    ['sync', 23],
  ] as const) {
    const { child, exited } = start(server, command, directory.path)
    child.stdout.destroy()
    expect(await exited).toEqual({ code, stderr: expect.stringContaining('was not uploaded') })
  }
})

test.skipIf(!existsSync('/dev/full'))(
  'A8 Y5 a command whose output cannot be written fails and says so, and uploads go on',
  async () => {
    await using server = await startServer({ MEDIABUCKET_AUDIT: 'changes' })
    await using directory = await temporaryDirectory()
    for (const name of ['a.txt', 'b.txt']) await writeFile(join(directory.path, name), name)
    for (const args of [
      ['upload', directory.path],
      ['ls', '--all'],
      ['audit'],
      ['token', 'create', '--bucket', 'default'],
      ['fsck', '--json'],
      ['help'],
    ]) {
      const { command, env } = commandLine(server, ...args)
      const child = spawn('sh', ['-c', 'exec "$@" >/dev/full', 'sh', ...command], {
        env: { ...env, MEDIABUCKET_DATA: server.data },
      })
      const stderr = text(child.stderr)
      const [code] = await once(child, 'close')
      expect([args, code]).toEqual([args, 1])
      expect((await stderr).match(/^.*standard output cannot be written \(ENOSPC\)$/gm)).toHaveLength(1)
      expect(await stderr).not.toMatch(/^ +at /m)
    }
    expect(await listAll(server)).toHaveLength(2)
  },
)

test('Ctrl-C ends get -o with 130, and leaves no partial file', async () => {
  await using directory = await temporaryDirectory()
  await using slow = await listen(
    (_request, response) => void response.writeHead(200).write('the first part'),
  )
  const file = join(directory.path, 'file')
  const { child, exited } = start({ url: slow.url, token: 'x' }, 'get', 'some-id', '-o', file)
  await until('a part of the file', async () => (await directory.names()).length > 0)
  child.kill('SIGINT')
  expect(await exited).toEqual({ code: 130, stderr: '' })
  expect(await directory.names()).toEqual([])
})

test.each([['keys', 'list'], ['bucket', 'list'], ['token', 'list'], ['webhook', 'list'], ['audit']])(
  'Ctrl-C ends %s %s over HTTP with 130',
  async (...words) => {
    const arrived = Promise.withResolvers<void>()
    await using silent = await listen(() => arrived.resolve())
    const { child, exited } = start({ url: silent.url, token: 'x' }, ...words, '--url', silent.url)
    await arrived.promise
    child.kill('SIGINT')
    expect(await exited).toEqual({ code: 130, stderr: '' })
  },
)

test('Ctrl-C ends an upload with 130, and prints a summary', async () => {
  await using directory = await temporaryDirectory()
  for (const name of ['a', 'b', 'c']) await writeFile(join(directory.path, name), name)
  const arrived = Promise.withResolvers<void>()
  await using silent = await listen(() => arrived.resolve())
  const { child, exited } = start({ url: silent.url, token: 'x' }, 'upload', directory.path)
  await arrived.promise
  child.kill('SIGINT')
  const { code, stderr } = await exited
  expect([code, stderr]).toEqual([
    130,
    expect.stringMatching(
      /^Uploaded 0 of 3 files.*\nNot tried: 3 files\.\nRun the same command again to continue\.\n$/,
    ),
  ])
})
