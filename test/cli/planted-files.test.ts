import { execFile } from 'node:child_process'
import { link, lstat, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { createClient, type Media } from '../../packages/client/src/index.ts'
import { newToken } from '../client/buckets.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { startLossyProxy } from '../harness/lossy-proxy.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { type CommandResult, commandLine } from './client-run.ts'

const run = promisify(execFile)

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

/** A bucket with an item for each plant and another one, a directory to write to, and one outside of it with a file that must not change. */
async function scene() {
  const directory = await temporaryDirectory()
  const at = (...names: string[]) => join(directory.path, ...names)
  const service = { url: server.url, token: await newToken(server, uniqueName('planted')) }
  const client = createClient(service)
  const items = new Map<string, Media>()
  for (const [index, plant] of knownPlants.entries())
    items.set(
      plant,
      await client.upload(Buffer.from(`the bytes of ${plant}`), { filename: `sub/a${index}.txt` }),
    )
  const [item] = items.values()
  if (item === undefined) throw new Error('there is no plant')
  const other = await client.upload(Buffer.from('other bytes'), { filename: 'sub/b.txt' })
  for (const name of ['copy', 'outside', 'state', 'files']) await mkdir(at(name))
  await writeFile(at('outside/precious'), 'the')
  await writeFile(at('files/c.txt'), 'see')
  return {
    ...{ at, service, client, items, item, other },
    partPath: async (item: Media) => {
      const etag = (await client.get(item.id)).headers.get('etag') ?? ''
      return at('copy', `.${item.id}.${Buffer.from(etag).toString('base64url')}.mediabucket-part`)
    },
    /** With a state directory of its own. A command that waits for a FIFO is killed. */
    async run(...args: string[]): Promise<CommandResult> {
      const { command, env } = commandLine(service, ...args)
      const [program = '', ...rest] = command
      const options = { env: { ...env, XDG_STATE_HOME: at('state') }, timeout: 30_000, killSignal: 9 }
      return await run(program, rest, options).then(
        (output) => ({ code: 0, ...output }),
        (failure: CommandResult) => failure,
      )
    },
    async outside() {
      const names = await readdir(at('outside'))
      const contents = names.map(async (name) => [name, await readFile(at('outside', name), 'utf8')] as const)
      return Object.fromEntries(await Promise.all(contents))
    },
    [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose](),
  }
}

type Scene = Awaited<ReturnType<typeof scene>>

/** What somebody puts at a path at which a command writes. */
const plants: Readonly<Record<string, (path: string, at: Scene['at']) => Promise<unknown>>> = {
  'a link': (path, at) => symlink(at('outside/precious'), path),
  'a link to nothing': (path, at) => symlink(at('outside/new'), path),
  'a hard link': (path, at) => link(at('outside/precious'), path),
  'a FIFO': (path) => run('mkfifo', [path]),
  'a socket or device': (path) => run('mknod', [path, 'c', '1', '7']),
}

/** Those that this user can create. */
const knownPlants = Object.keys(plants).filter(
  (plant) => plant !== 'a socket or device' || process.getuid?.() === 0,
)

const commands: Readonly<Record<string, (at: Scene) => string[]>> = {
  'get -d': ({ items, at }) => ['get', ...[...items.values()].map(({ id }) => id), '-d', at('copy')],
  'get --all': ({ at }) => ['get', '--all', at('copy')],
  'sync --down': ({ at }) => ['sync', '--down', at('copy')],
}

const argumentsOf = (command: string, at: Scene) => commands[command]?.(at) ?? []

/** The name of an item with its path, or for `get -d` without its directory. */
const nameIn = (command: string, { path }: Media) =>
  command === 'get -d' ? (path ?? '').replace('sub/', '') : (path ?? '')

test.each(Object.keys(commands))('%s writes no partial file through what is planted', async (command) => {
  await using at = await scene()
  for (const [plant, item] of at.items) await plants[plant]?.(await at.partPath(item), at.at)
  const { code, stderr } = await at.run(...argumentsOf(command, at))
  expect([code, stderr]).toEqual([0, expect.stringContaining('Downloaded')])
  expect(await at.outside()).toEqual({ precious: 'the' })
  for (const [plant, item] of at.items) {
    const path = at.at('copy', nameIn(command, item))
    expect((await lstat(path)).isFile(), plant).toBe(true)
    expect(await readFile(path, 'utf8')).toBe(`the bytes of ${plant}`)
  }
})

test.each(Object.keys(commands))(
  '%s replaces no file through what is planted with its name',
  async (command) => {
    await using at = await scene()
    await mkdir(at.at('copy/sub'))
    for (const [plant, item] of at.items) await plants[plant]?.(at.at('copy', nameIn(command, item)), at.at)
    const { code, stdout } = await at.run(...argumentsOf(command, at))
    expect(code).toBe(0)
    expect(await at.outside()).toEqual({ precious: 'the' })
    for (const [plant, item] of at.items) {
      const name = nameIn(command, item).replace('.txt', command === 'sync --down' ? '.txt' : '-2.txt')
      expect(stdout, plant).toContain(name)
      expect(await readFile(at.at('copy', name), 'utf8')).toBe(`the bytes of ${plant}`)
    }
  },
)

test.each(['get --all', 'sync --down'])(
  '%s writes nothing through a directory that is replaced by a link during the download',
  async (command) => {
    await using at = await scene()
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    const waiting = { is: false }
    await using proxy = await startLossyProxy(
      server.url,
      () => false,
      async (_method, path) => {
        if (!path.includes(at.other.id)) return
        waiting.is = true
        await held
      },
    )
    const { command: line, env } = commandLine({ ...at.service, url: proxy.url }, ...argumentsOf(command, at))
    const [program = '', ...rest] = line
    const ended = run(program, rest, { env: { ...env, XDG_STATE_HOME: at.at('state') } }).catch(
      (failure: CommandResult) => failure,
    )
    await until(
      'one file is there, and the other one is requested',
      async () =>
        waiting.is && (await readdir(at.at('copy/sub')).catch(() => [])).some((name) => name === 'a0.txt'),
    )
    // The command may create the directory again between the two calls.
    for (let isLink = false, number = 0; !isLink; number += 1) {
      await rename(at.at('copy/sub'), at.at(`moved${number}`))
      isLink = await symlink(at.at('outside'), at.at('copy/sub')).then(
        () => true,
        (error: NodeJS.ErrnoException) => {
          if (error.code !== 'EEXIST') throw error
          return false
        },
      )
    }
    release()
    const result = await ended
    expect(result.stderr).toContain(`${at.at('copy/sub')} is no directory`)
    expect(await at.outside()).toEqual({ precious: 'the' })
  },
)

test('get --all and sync --down write nothing through a link in place of a directory', async () => {
  for (const command of ['get --all', 'sync --down']) {
    await using at = await scene()
    await symlink(at.at('outside'), at.at('copy/sub'))
    const { code, stderr } = await at.run(...argumentsOf(command, at))
    expect([code, stderr]).toEqual([
      command === 'get --all' ? 1 : 23,
      expect.stringContaining(`${at.at('copy/sub')} is no directory`),
    ])
    expect(await at.outside()).toEqual({ precious: 'the' })
  }
})

test('sync --down --delete removes nothing through a link in place of a directory', async () => {
  await using at = await scene()
  expect((await at.run('sync', '--down', at.at('copy'))).code).toBe(0)
  await at.client.delete(at.item.id)
  const bytes = await readFile(at.at('copy/sub/a0.txt'))
  await rm(at.at('copy/sub'), { recursive: true })
  await writeFile(at.at('outside/a0.txt'), bytes)
  await symlink(at.at('outside'), at.at('copy/sub'))
  await at.run('sync', '--down', at.at('copy'), '--delete')
  expect(await at.outside()).toEqual({ precious: 'the', 'a0.txt': `${bytes}` })
})

/** Commands that keep state, which several runs of each use. */
const stateful: Readonly<Record<string, (at: Scene) => string[]>> = {
  upload: ({ at }) => ['upload', at('files'), at('missing')],
  sync: ({ at }) => ['sync', at('files')],
  'sync --down': ({ at }) => ['sync', '--down', at('copy')],
}

test.each(Object.keys(stateful))('%s writes no state through what is planted', async (command) => {
  await using at = await scene()
  const args = stateful[command]?.(at) ?? []
  const { code } = await at.run(...args)
  const root = at.at('state/mediabucket', command.split(' ')[0] === 'upload' ? 'uploads' : 'sync')
  const names = (await readdir(root)).filter((name) => !name.endsWith('.lock'))
  for (const [index, plant] of knownPlants.entries()) {
    for (const name of [...names, ...names.map((name) => `${name}.new`), 'f00d.lock']) {
      await rm(join(root, name), { force: true })
      await plants[plant]?.(join(root, name), at.at)
    }
    await writeFile(at.at(`files/d${index}.txt`), 'more')
    await at.client.upload(Buffer.from('more'), { filename: `sub/c${index}.txt` })
    const again = await at.run(...args)
    expect([again.code, again.stderr], plant).toEqual([code, expect.not.stringContaining('cannot be stored')])
    expect(await at.outside(), plant).toEqual({ precious: 'the' })
  }
})

test.each(Object.keys(stateful))('%s stores no state through a link to a directory', async (command) => {
  await using at = await scene()
  await mkdir(at.at('state/mediabucket'))
  for (const name of ['uploads', 'sync', 'downloads'])
    await symlink(at.at('outside'), at.at('state/mediabucket', name))
  const { stderr } = await at.run(...(stateful[command]?.(at) ?? []))
  expect(stderr).toContain('cannot be stored')
  expect(await at.outside()).toEqual({ precious: 'the' })
})
