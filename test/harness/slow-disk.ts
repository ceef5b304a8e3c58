import { globSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { uniqueName } from './unique-name.ts'
import { until } from './until.ts'

/** A disk that does not return the blobs that a test holds. */
export interface SlowDisk {
  /** For NODE_OPTIONS of the server. */
  readonly options: string
  /** Holds the blobs of these names instead of earlier ones. */
  readonly hold: (names: readonly string[]) => Promise<void>
  readonly release: () => void
  /** Resolves when a thread of the server waits for a blob. */
  readonly isWaitedFor: () => Promise<unknown>
}

export function slowDisk(): SlowDisk {
  const held = join(tmpdir(), uniqueName('held'))
  const blocked = () => globSync(`${held}.blocked.*`)
  return {
    options: slowModule(held),
    hold: (names) => writeFile(held, names.join(' ')),
    release() {
      for (const path of [held, ...blocked()]) rmSync(path, { force: true })
    },
    isWaitedFor: () => until('a thread waits for the disk', () => blocked().length > 0),
  }
}

/**
 * A module that is loaded before the service, also in its threads. While the file `held` exists, calls for the blobs that it names block their thread, as a slow
 * disk does. A blocked thread writes `blocked` into its own file.
 */
const slowModule = (held: string) =>
  `--import data:text/javascript,${encodeURIComponent(`
  import fs from 'node:fs'
  import { syncBuiltinESMExports } from 'node:module'
  import { threadId } from 'node:worker_threads'
  const held = ${JSON.stringify(held)}
  const { readFileSync, writeFileSync } = fs
  const cell = new Int32Array(new SharedArrayBuffer(4))
  const names = () => {
    try {
      return readFileSync(held, 'utf8')
    } catch {
      return ''
    }
  }
  const paths = new Map()
  function wait(path) {
    const name = /\\/blobs\\/\\w\\w\\/(\\w+)$/.exec(String(path))?.[1]
    if (name === undefined) return
    while (names().includes(name)) {
      writeFileSync(held + '.blocked.' + threadId, 'blocked')
      Atomics.wait(cell, 0, 0, 5)
    }
  }
  const { openSync, readSync, lstatSync } = fs
  fs.openSync = (path, ...rest) => {
    wait(path)
    const descriptor = openSync(path, ...rest)
    paths.set(descriptor, path)
    return descriptor
  }
  fs.readSync = (descriptor, ...rest) => {
    wait(paths.get(descriptor))
    return readSync(descriptor, ...rest)
  }
  fs.lstatSync = (path, ...rest) => {
    wait(path)
    return lstatSync(path, ...rest)
  }
  syncBuiltinESMExports()
`)}`
