import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { temporaryDirectory } from '../../harness/directory.ts'
import type { Pair } from '../../harness/s3-door.ts'
import { needTools } from '../../harness/tools.ts'
import type { Instance } from '../server-instances.ts'
import type { OtherObjects } from './check-objects.ts'
import { bytesOf, newPiece, partSize, sha256Of } from './contents.ts'
import type { ObjectLedger } from './object-ledger.ts'

/** Below which they are. */
export const rclonePrefix = 'rclone/'
const prefix = rclonePrefix

/** `rclone sync` of a directory that changes. */
export interface Syncs extends AsyncDisposable {
  readonly others: OtherObjects
  /** Changes the directory and syncs it again and again, until `isDone`; ends a run that is in progress then. */
  work(isDone: Promise<unknown>, instance: Instance): Promise<void>
  /** Syncs it completely, and compares it with the bucket. */
  finish(instance: Instance, hashes: () => Promise<ReadonlyMap<string, string>>): Promise<void>
}

export async function openSyncs(record: ObjectLedger, pair: Pair, bucket: string): Promise<Syncs> {
  needTools('rclone')
  const directory = await temporaryDirectory()
  const source = join(directory.path, 'source')
  await mkdir(source)
  /** The hashes that a file ever had. */
  const versions = new Map<string, Set<string>>()

  async function change(): Promise<void> {
    for (let count = 0; count < 6; count += 1) {
      const path = `${record.random(3)}/${['ä', 'b c', 'd+e'][record.random(3)]}/${record.random(4)}.bin`
      const file = join(source, path)
      if (record.random(4) === 0) await rm(file, { force: true })
      else {
        // Some are uploaded in parts.
        const size = record.random(8) === 0 ? partSize + record.random(99_000) : record.random(90_000)
        const bytes = bytesOf(
          size > partSize ? [newPiece(partSize), newPiece(size - partSize)] : [newPiece(size)],
        )
        const known = versions.get(path) ?? new Set()
        versions.set(path, known.add(sha256Of(bytes)))
        await mkdir(dirname(file), { recursive: true })
        await writeFile(file, bytes)
      }
    }
  }

  function start({ s3 }: Instance) {
    const options = [
      '--retries',
      '1',
      '--low-level-retries',
      '1',
      '--transfers',
      '3',
      '--config',
      '/dev/null',
    ]
    const child = spawn('rclone', ['sync', source, `door:${bucket}/${prefix}`, ...options], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        HOME: directory.path,
        RCLONE_CONFIG_DOOR_TYPE: 's3',
        RCLONE_CONFIG_DOOR_PROVIDER: 'Other',
        RCLONE_CONFIG_DOOR_ENDPOINT: s3,
        RCLONE_CONFIG_DOOR_ACCESS_KEY_ID: pair.accessKeyId,
        RCLONE_CONFIG_DOOR_SECRET_ACCESS_KEY: pair.secretAccessKey,
        RCLONE_S3_UPLOAD_CUTOFF: '5M',
        RCLONE_S3_CHUNK_SIZE: '5M',
      },
    })
    let messages = ''
    child.stderr.on('data', (chunk) => {
      messages += chunk
    })
    return { child, exited: once(child, 'exit'), messages: () => messages }
  }

  async function files(): Promise<string[]> {
    const entries = await readdir(source, { recursive: true, withFileTypes: true })
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => relative(source, join(entry.parentPath, entry.name)))
  }

  return {
    others: {
      prefix,
      check(key, { status, bytes }) {
        const known = versions.get(key.slice(prefix.length))
        if (status !== 200 || known === undefined || !known.has(sha256Of(bytes)))
          record.fault('halfVisible', `${key} has status ${status} or bytes that no file had`)
      },
    },
    async work(isDone, instance) {
      let isOver = false
      const done = isDone.then(() => {
        isOver = true
      })
      while (!isOver) {
        await change()
        const { child, exited } = start(instance)
        await Promise.race([exited, done])
        child.kill('SIGKILL')
        await exited
      }
    },
    async finish(instance, hashes) {
      const { exited, messages } = start(instance)
      const [code] = await exited
      if (code !== 0) return record.fault('lost', `rclone ended with ${code}: ${messages()}`)
      const found = await hashes()
      const paths = await files()
      for (const path of paths)
        if (found.get(`${prefix}${path}`) !== sha256Of(await readFile(join(source, path))))
          record.fault('lost', `rclone has synced ${path}, and the bucket has other bytes or none`)
      if (found.size !== paths.length)
        record.fault('returned', `rclone has synced ${paths.length} files, and the bucket has ${found.size}`)
    },
    [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose](),
  }
}
