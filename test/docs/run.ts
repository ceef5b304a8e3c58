import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../architecture/sources.ts'
import { bin, startServer, type TestServer } from '../harness/server.ts'
import { needTools } from '../harness/tools.ts'
import type { Block } from './blocks.ts'
import { interpreters } from './interpreters.ts'

/** The URL of the service in the documents. */
export const documented = 'http://127.0.0.1:8080'

/** A minimal valid PNG. */
const picture = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

/** Runs `npx mediabucket` as npx does in a clone, but without npm, which takes a second of CPU time for each of them. */
const npx = `#!/bin/sh
[ "$1" = mediabucket ] || { echo "npx is asked for $1" >&2; exit 1; }
shift
exec "${process.execPath}" "${bin}" "$@"
`

/** Runs a command without another user. A setting may be before it. */
const sudo = `#!/bin/sh
exec env "$@"
`

/** A server, and a directory with the files that the examples use. */
export interface Stage extends AsyncDisposable {
  readonly server: TestServer
  /** The working directory of the blocks. */
  readonly directory: string
  run(block: Block): Promise<{ stdout: string; stderr: string }>
}

export async function openStage(): Promise<Stage> {
  const server = await startServer()
  const directory = await mkdtemp(join(tmpdir(), 'mediabucket-docs-'))
  await symlink(join(root, 'node_modules'), join(directory, 'node_modules'))
  await writeFile(join(directory, 'photo.png'), picture)
  await writeFile(join(directory, 'notes.txt'), 'Notes of the harbour.\n')
  await mkdir(join(directory, 'bin'))
  await writeFile(join(directory, 'bin/npx'), npx, { mode: 0o755 })
  await writeFile(join(directory, 'bin/mediabucket'), `#!/bin/sh\nexec npx mediabucket "$@"\n`, {
    mode: 0o755,
  })
  await writeFile(join(directory, 'bin/sudo'), sudo, { mode: 0o755 })
  const env = {
    PATH: `${join(directory, 'bin')}:${join(root, 'node_modules/.bin')}:${process.env['PATH']}`,
    HOME: directory,
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
    URL: server.url,
    TOKEN: server.token,
    // As docs/api.md sets them.
    AUTH: `Authorization: Bearer ${server.token}`,
    TYPE: 'Content-Type: application/json',
    MEDIABUCKET_DATA: server.data,
  }
  return {
    server,
    directory,
    async run({ language, code }) {
      const interpreter = interpreters[language]
      if (!interpreter) throw new Error(`nothing runs ${language}`)
      needTools(...interpreter.needs)
      const file = join(directory, `block.${interpreter.extension}`)
      const here = code
        .replaceAll(documented, server.url)
        .replaceAll('/mnt/backups', join(directory, 'backups'))
        .replaceAll('/var/lib/mediabucket', join(directory, 'mediabucket'))
      await writeFile(file, here)
      return await promisify(execFile)(interpreter.command, [...interpreter.arguments, file], {
        cwd: directory,
        env,
        timeout: 150_000,
      })
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
