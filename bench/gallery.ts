import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { chromium } from 'playwright-core'
import ensureBuilt from '../packages/gallery/ensure-built.ts'
import { strings } from '../packages/gallery/src/strings.ts'
import { launchOptions } from '../test/harness/chromium.ts'
import { readPage } from '../test/harness/wire.ts'
import { fillBuckets } from './buckets.ts'
import { startMediabucket } from './mediabucket.ts'
import { type Row, runInTurn } from './rounds.ts'
import type { Measure } from './subject.ts'

const bin = resolve(import.meta.dirname, '../packages/server/bin/mediabucket.js')

/** How many: the short form proves that the bench runs, and measures nothing. */
export interface GalleryExtent {
  readonly rounds: number
  readonly files: number
}

export interface GalleryResults {
  readonly rows: readonly Row[]
  readonly files: number
}

/** Bytes of each file. */
const size = 1000

/** Uploads the same small files by the gallery in a browser and by `mediabucket upload`, in turn, to one server. */
export async function benchGallery(
  extent: GalleryExtent,
  report: (text: string) => void,
): Promise<GalleryResults> {
  await ensureBuilt()
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  const [data, folder] = [join(scratch, 'data'), join(scratch, 'files')]
  mkdirSync(folder)
  const paths = Array.from({ length: extent.files }, (_, number) => join(folder, `${number}.txt`))
  for (const [number, path] of paths.entries()) writeFileSync(path, `${number} `.padEnd(size, 'x'))
  const [bucket] = await fillBuckets(data, [{ bucket: 'many', items: 1 }])
  if (!bucket) throw new Error('no bucket')
  const server = await startMediabucket(data)
  const browser = await chromium.launch(launchOptions)

  async function countItems(): Promise<number> {
    const headers = { authorization: `Bearer ${bucket?.token}` }
    return (await readPage(await fetch(`${server.url}/api/media`, { headers }))).total
  }

  /** The time of `upload`, and the server's CPU. Rejects unless each file was stored. */
  async function timed(upload: () => Promise<void>): Promise<Measure> {
    const items = await countItems()
    // Excludes the pending disk writes of the previous case.
    execFileSync('sync')
    const [start, cpu] = [performance.now(), server.cpu()]
    await upload()
    const milliseconds = performance.now() - start
    const perSecond = (extent.files * 1000) / milliseconds
    const cpuPerRequest = (server.cpu() - cpu) / extent.files
    const stored = (await countItems()) - items
    if (stored !== extent.files) throw new Error(`${stored} of ${extent.files} files were stored`)
    return {
      perSecond,
      bytesPerSecond: perSecond * size,
      cpuPerRequest,
      p50: milliseconds,
      p99: milliseconds,
    }
  }

  const byCommand = () =>
    timed(async () => {
      const env = {
        PATH: process.env['PATH'],
        MEDIABUCKET_URL: server.url,
        MEDIABUCKET_TOKEN: bucket.token,
        XDG_STATE_HOME: join(scratch, 'state'),
      }
      await promisify(execFile)(process.execPath, [bin, 'upload', folder], { env, maxBuffer: 2 ** 28 })
    })

  async function byGallery(): Promise<Measure> {
    const context = await browser.newContext()
    try {
      const page = await context.newPage()
      await page.goto(server.url)
      await page.getByLabel(strings.signIn.token, { exact: true }).fill(bucket?.token ?? '')
      await page.getByRole('button', { name: strings.signIn.submit }).click()
      await page.getByRole('button', { name: strings.header.signOut }).waitFor()
      const [chooser] = await Promise.all([
        page.waitForEvent('filechooser'),
        page.getByRole('button', { name: strings.header.upload, exact: true }).click(),
      ])
      return await timed(async () => {
        await chooser.setFiles(paths)
        const done = strings.uploads.finished(extent.files)
        await page.getByRole('heading', { name: done, exact: true }).waitFor({ timeout: 300_000 })
      })
    } finally {
      await context.close()
    }
  }

  try {
    const rows = await runInTurn(
      [
        { id: 'command line', run: byCommand },
        { id: 'gallery', run: byGallery },
      ],
      extent.rounds,
      report,
    )
    return { rows, files: extent.files }
  } finally {
    await browser.close()
    await server.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}
