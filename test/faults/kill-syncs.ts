import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { createClient } from '../../packages/client/src/index.ts'
import { commandLine, runClient } from '../cli/client-run.ts'
import { usePostgres, useS3 } from '../harness/database.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { freePort } from '../harness/free-port.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { type Fault, onEngines, type Verdict } from './fault.ts'

/** Enough for several requests at a time; fewer in the short form. */
const fileCounts = { short: 200, long: 500 }

/** Kills in one way of the files through both services. */
const killsPerWay = 5

type Victim = 'client' | 'service'

/** A service that keeps its port and its data when it is killed. */
async function createService() {
  const settings = {
    ...{ MEDIABUCKET_PORT: String(await freePort()) },
    ...{ MEDIABUCKET_ADDRESS_RATE: 'off', MEDIABUCKET_AUTH_FAILURE_RATE: 'off' },
  }
  let server: TestServer = await startServer(settings)
  const { url, token, data } = server
  const client = createClient({ url, token })
  return {
    ...{ url, token },
    items: async () => (await client.bucket()).items,
    async killAndStart() {
      await server.kill()
      server = await startServer(settings, data)
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await rm(data, { recursive: true, force: true })
    },
  }
}

type Service = Awaited<ReturnType<typeof createService>>

/** Starts a command, kills it or its service at its first line of output, and resolves when the command has ended. */
async function interrupt(service: Service, args: readonly string[], victim: Victim): Promise<void> {
  const { command, env } = commandLine(service, ...args)
  const [program = '', ...rest] = command
  const child: ChildProcess = spawn(program, rest, { env, stdio: ['ignore', 'pipe', 'ignore'] })
  const exited = once(child, 'exit')
  const { stdout } = child
  if (stdout) await Promise.race([once(stdout, 'data'), exited])
  stdout?.resume()
  if (victim === 'client') child.kill('SIGKILL')
  else await service.killAndStart()
  await exited
}

/** The files below a directory with their contents. */
async function contentsOf(directory: string): Promise<ReadonlyMap<string, string>> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const contents = new Map<string, string>()
  for (const file of files.sort()) contents.set(relative(directory, file), await readFile(file, 'latin1'))
  return contents
}

/** Writes the files of a way: some of those of the way before it are changed, moved or removed. */
async function writeFiles(directory: string, way: number, fileCount: number): Promise<void> {
  for (let index = 0; index < fileCount; index += 1) {
    const isNew = way === 0 || (index + way) % 5 === 0
    const moved = (at: number) => (index % 10 === 0 ? at % 3 : 0)
    const path = (at: number) => join(directory, `${index % 7}`, `${moved(at)}`, `é ${index}.txt`)
    if (moved(way) !== moved(way - 1)) await rm(path(way - 1), { force: true })
    if (!isNew && moved(way) === moved(way - 1)) continue
    await mkdir(dirname(path(way)), { recursive: true })
    await writeFile(path(way), `file ${index} of way ${way}\n`.repeat(1 + (index % 50)))
  }
}

/**
 * Sends a directory to a service, from there to another directory, to a second service, and to a third directory, and kills the commands
 * and the services on the way. The first way of a short run is without kills, so that files are changed, moved and removed under them. Then the directories are equal, and each service has each file once.
 */
async function run(rounds: number, onRound: () => void): Promise<Verdict> {
  await using directory = await temporaryDirectory()
  await using first = await createService()
  await using second = await createService()
  const at = (name: string) => join(directory.path, name)
  const legs = [
    { service: first, args: ['sync', at('a'), '--delete'], kills: 2 },
    { service: first, args: ['sync', '--down', at('b'), '--delete'], kills: 1 },
    { service: second, args: ['sync', at('b'), '--delete'], kills: 1 },
    { service: second, args: ['sync', '--down', at('c'), '--delete'], kills: 1 },
  ]
  const fileCount = rounds > killsPerWay ? fileCounts.long : fileCounts.short
  const faults: string[] = []
  let [lost, returned, kills] = [0, 0, 0]
  for (let way = 0; kills < rounds; way += 1) {
    const isKilled = way > 0 || rounds > killsPerWay
    await writeFiles(at('a'), way, fileCount)
    for (const { service, args, kills: count } of legs) {
      for (let killed = 0; isKilled && killed < count; killed += 1) {
        await interrupt(service, args, (way + kills) % 2 === 0 ? 'client' : 'service')
        kills += 1
        onRound()
      }
      const { code, stderr } = await runClient(service, ...args)
      if (code !== 0) faults.push(`way ${way}: ${args.join(' ')} ended with ${code}: ${stderr}`)
    }
    const [wanted, found] = [await contentsOf(at('a')), await contentsOf(at('c'))]
    for (const [path, content] of wanted)
      if (found.get(path) !== content) {
        lost += 1
        faults.push(`way ${way}: ${path} ${found.has(path) ? 'has other bytes' : 'is missing'}`)
      }
    for (const path of found.keys())
      if (!wanted.has(path)) {
        returned += 1
        faults.push(`way ${way}: ${path} was not deleted`)
      }
    for (const [name, service] of Object.entries({ first, second })) {
      const items = await service.items()
      if (items !== wanted.size) faults.push(`way ${way}: the ${name} service has ${items} items`)
    }
  }
  return { rounds: kills, acknowledged: fileCount, lost, halfVisible: 0, returned, faults }
}

export const killSyncs: Fault = { title: 'kill -9 of clients and services during sync', run }

export const killSyncsOnPostgresAndS3 = onEngines(killSyncs, 'PostgreSQL and S3', usePostgres, useS3)
