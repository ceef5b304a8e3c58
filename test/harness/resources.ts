import { readdir, readFile, readlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { countObjects } from './ceph.ts'
import { databaseSettings } from './database.ts'
import { rowsOf } from './postgres.ts'
import type { SharedServer, TestServer } from './server.ts'
import { readPage } from './wire.ts'

const filesIn = async (directory: string): Promise<number> =>
  (await readdir(directory, { recursive: true, withFileTypes: true })).filter(
    (entry) => entry.isFile() && entry.name !== '.identity',
  ).length

/** Counts the files in the catalog. With `bucket`, files of items of other buckets do not count. */
async function contentsIn(directory: string, bucket: string | null): Promise<number> {
  const others = `SELECT content_id FROM items JOIN buckets ON buckets.id = bucket_id
    WHERE name <> '${bucket}' AND content_id IS NOT NULL`
  const countContents = `SELECT count(*) AS count FROM contents${bucket === null ? '' : ` WHERE id NOT IN (${others})`}`
  const { MEDIABUCKET_DATABASE_URL: url } = await databaseSettings(directory)
  if (url !== undefined) return Number((await rowsOf(url, countContents))[0]?.['count'])
  using catalog = new DatabaseSync(join(directory, 'catalog.db'), { readOnly: true })
  return Number(catalog.prepare(countContents).get()?.['count'])
}

/** Files in the blob store: stored ones, and those that are being received. */
export async function blobsIn(directory: string): Promise<{ stored: number; temporary: number }> {
  const settings = await databaseSettings(directory)
  if (settings['MEDIABUCKET_BLOBS_URL'] !== undefined) return await countObjects(settings)
  const [stored, temporary] = await Promise.all(
    ['blobs', 'tmp'].map((name) => filesIn(join(directory, name))),
  )
  return { stored: stored ?? 0, temporary: temporary ?? 0 }
}

/** Counts the items of the first bucket, and the stored and temporary files of all buckets. */
export const countStored = (server: SharedServer) => countOf(server, null)

/** The same without the small files of other buckets. Requests of earlier tests can still be storing such files. */
export const countOwn = (server: SharedServer) => countOf(server, server.bucket)

async function countOf(server: SharedServer, bucket: string | null) {
  const [page, { stored, temporary }, contents] = await Promise.all([
    server.request('/api/media').then(readPage),
    blobsIn(server.data),
    contentsIn(server.data, bucket),
  ])
  return { total: page.total, blobs: stored + contents, temporary }
}

/** How many sockets the server has open. Files that it opens in the background do not count. */
export async function openSockets({ process }: TestServer): Promise<number> {
  const directory = `/proc/${process.pid}/fd`
  const targets = await Promise.all(
    // A descriptor can be closed in between.
    (await readdir(directory)).map((fd) => readlink(join(directory, fd)).catch(() => '')),
  )
  return targets.filter((target) => target.startsWith('socket:')).length
}

/** How many files and sockets the server has open. */
export const openFiles = async ({ process }: TestServer): Promise<number> =>
  (await readdir(`/proc/${process.pid}/fd`)).length

/** Resident memory of the server, now and at its highest since the start or the last `forgetPeak`. Bytes. */
export async function memory({ process }: TestServer) {
  const status = await readFile(`/proc/${process.pid}/status`, 'utf8')
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * 1024
  return { now: bytes('VmRSS'), peak: bytes('VmHWM') }
}

export const forgetPeak = ({ process }: TestServer): Promise<void> =>
  writeFile(`/proc/${process.pid}/clear_refs`, '5')
