import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fillBuckets } from './buckets.ts'
import { startMediabucket } from './mediabucket.ts'
import { type Case, type Extent, measureInRounds, type Row } from './rounds.ts'
import type { Subject } from './subject.ts'
import { startNginx } from './yardsticks/nginx.ts'

const counts = [1, 2] as const

/**
 * One and two workers. The servers and the load share both cores, so that a second worker gains less than a core. nginx
 * compresses each response, so that a request takes it about as much CPU time as it takes the service.
 */
export async function benchWorkers(
  extent: Pick<Extent, 'rounds' | 'seconds'>,
  report: (text: string) => void,
): Promise<readonly Row[]> {
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  const stops: (() => Promise<void>)[] = []
  const stopAtEnd = async (starting: Promise<Subject>): Promise<Subject> => {
    const subject = await starting
    stops.push(subject.stop)
    return subject
  }
  try {
    const cases: Case[] = []
    for (const workers of counts) {
      const data = join(scratch, `data-${workers}`)
      const [bucket, uploads] = await fillBuckets(data, [
        { bucket: 'small', items: 30 },
        // Apart from the small bucket, whose pages would grow.
        { bucket: 'uploads', items: 1 },
      ])
      if (!bucket || !uploads) throw new Error('no buckets')
      const headers = [`Authorization: Bearer ${bucket.token}`]
      const settings = { MEDIABUCKET_WORKERS: `${workers}`, MEDIABUCKET_LOG_LEVEL: 'warn' }
      const name = workers === 1 ? '1 worker' : `${workers} workers`
      const ours = await stopAtEnd(startMediabucket(data, settings, name, 'together'))
      const path = '/api/media?page=2'
      const page = await fetch(ours.url + path, { headers: { authorization: `Bearer ${bucket.token}` } })
      const directory = join(scratch, `nginx-${workers}`)
      mkdirSync(join(directory, 'files'), { recursive: true })
      writeFileSync(join(directory, 'files', 'page.json'), Buffer.from(await page.arrayBuffer()))
      const nginx = await stopAtEnd(startNginx(directory, { workers, gzip: true, place: 'together' }))
      const connections = 64
      const script = [resolve(import.meta.dirname, 'lua/post-file.lua'), uploads.token, '10000']
      cases.push(
        {
          id: `nginx, ${name}`,
          subject: nginx,
          path: '/page.json',
          load: { connections, headers: ['Accept-Encoding: gzip'] },
        },
        { id: `listing, ${name}`, subject: ours, path, load: { connections, headers } },
        {
          id: `listing, a connection each, ${name}`,
          subject: ours,
          path,
          load: { connections: 32, headers: [...headers, 'Connection: close'] },
        },
        {
          id: `uploads of 10 kB, ${name}`,
          subject: ours,
          path: '/api/media',
          load: { connections: 32, script },
        },
      )
    }
    return await measureInRounds(cases, { ...extent, large: 0, buckets: 0 }, report)
  } finally {
    for (const stop of stops) await stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}
