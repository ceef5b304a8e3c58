import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, utimes, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { createClient } from '../../packages/client/src/index.ts'
import { newToken } from '../client/buckets.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import type { SharedServer } from '../harness/server.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { commandLine, runClient } from './client-run.ts'

/** A new bucket, and an empty directory. */
export async function syncScene(server: SharedServer) {
  const directory = await temporaryDirectory()
  const service = { url: server.url, token: await newToken(server, uniqueName('sync')) }
  const client = createClient(service)
  const at = (...names: string[]) => join(directory.path, ...names)
  return {
    service,
    client,
    at,
    sync: (...args: string[]) => runClient(service, 'sync', ...args),
    /** The paths of the bucket, each with the content of its newest item. */
    async paths() {
      const found: Record<string, string> = {}
      for await (const item of client.items({ path: '' }))
        found[item.path ?? ''] = await (await client.get(item.id)).text()
      return found
    },
    async write(files: Readonly<Record<string, string>>, below = 'files') {
      for (const [name, content] of Object.entries(files)) {
        const path = at(below, name)
        await mkdir(dirname(path), { recursive: true })
        await writeFile(path, content)
        // Only files that did not change in the last seconds are recognized by their times.
        const time = new Date(1_700_000_000_000 + content.length)
        await utimes(path, time, time)
      }
    },
    [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose](),
  }
}

/** Starts a command that goes on until it ends or is killed. */
export function start(service: Pick<SharedServer, 'url' | 'token'>, ...args: string[]) {
  const { command, env } = commandLine(service, ...args)
  const [file = '', ...rest] = command
  const child = spawn(file, rest, { env, stdio: ['ignore', 'pipe', 'ignore'] })
  child.stdout.resume()
  return { child, exited: once(child, 'close') }
}

/** The files below a directory with their contents. */
export async function contentsOf(directory: string): Promise<Record<string, string>> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const contents = files.map(
    async (path) => [relative(directory, path), await readFile(path, 'utf8')] as const,
  )
  return Object.fromEntries((await Promise.all(contents)).sort())
}
