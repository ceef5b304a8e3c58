import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import { fillBuckets } from './buckets.ts'
import { startMediabucket } from './mediabucket.ts'

// node bench/log-during-backups.ts --minutes 10 --items 1000000: stores files of 10 kB without a pause while one backup
// follows another, and prints how large the write-ahead log of the catalog became.

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '10' }, items: { type: 'string', default: '1000000' } },
})
const connections = 16
const body = Buffer.alloc(10_000, 'x')
const sampleInterval = 5

const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
const data = join(scratch, 'data')
const bin = resolve(import.meta.dirname, '../packages/server/bin/mediabucket.js')
let end = Number.POSITIVE_INFINITY
const isRunning = () => performance.now() < end

/** The log while a backup runs, and without one. Bytes. */
const largest = { during: 0, without: 0 }
let uploads = 0
let isBackingUp = false
const backupSeconds: number[] = []

async function sendFiles(url: string, token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' }
  while (isRunning()) {
    const response = await fetch(`${url}/api/media`, { method: 'POST', body, headers })
    await response.arrayBuffer()
    if (response.status !== 201) throw new Error(`an upload was answered with ${response.status}`)
    uploads += 1
  }
}

async function runBackups(): Promise<void> {
  const env = { PATH: process.env['PATH'], MEDIABUCKET_DATA: data }
  while (isRunning()) {
    const began = performance.now()
    isBackingUp = true
    await promisify(execFile)(process.execPath, [bin, 'backup', join(scratch, 'backup')], { env })
    isBackingUp = false
    backupSeconds.push((performance.now() - began) / 1000)
    await sleep(1_000)
  }
}

async function watchLog(): Promise<void> {
  while (isRunning()) {
    const { size } = statSync(join(data, 'catalog.db-wal'))
    const when = isBackingUp ? 'during' : 'without'
    largest[when] = Math.max(largest[when], size)
    await sleep(sampleInterval)
  }
}

try {
  const [bucket] = await fillBuckets(data, [{ bucket: 'uploads', items: Number(values.items) }])
  const server = await startMediabucket(data)
  try {
    end = performance.now() + Number(values.minutes) * 60_000
    const uploading = Array.from({ length: connections }, () => sendFiles(server.url, bucket?.token ?? ''))
    await Promise.all([...uploading, runBackups(), watchLog()])
  } finally {
    await server.stop()
  }
  const size = statSync(join(data, 'catalog.db')).size
  console.log(
    JSON.stringify({ uploads, backupSeconds: backupSeconds.map(Math.round), largest, catalogBytes: size }),
  )
} finally {
  rmSync(scratch, { recursive: true, force: true })
}
