import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { needTools } from '../harness/tools.ts'

const root = resolve(import.meta.dirname, '../..')
const programs = ['wrk', 'nginx', 'taskset', 'chromium-headless-shell', 'postgres', 'radosgw']

/** `npm run test:benches` runs all. */
const isChosen = (suite: string) => suite === 'listing' || process.env['MEDIABUCKET_TEST_BENCHES'] === 'all'

const suites = [
  { suite: 'listing', bars: 15 },
  { suite: 'items', bars: 39 },
  { suite: 'streams', bars: 5 },
  { suite: 'uploads', bars: 14 },
  { suite: 'downloads', bars: 7 },
  { suite: 'variants', bars: 4 },
  { suite: 'gallery', bars: 2 },
  { suite: 'workers', bars: 1 },
  { suite: 'tenants', bars: 8 },
  { suite: 'webhooks', bars: 1 },
  { suite: 'feed', bars: 7 },
  { suite: 'start', bars: 4 },
  { suite: 'memory', bars: 3 },
  { suite: 'sync', bars: 7 },
  { suite: 'postgres', bars: 4 },
  { suite: 's3', bars: 3 },
  { suite: 'objects', bars: 4 },
  { suite: 'lists', bars: 6 },
].filter(({ suite }) => isChosen(suite))

// Checks that the benches run. Their figures are only valid on an idle machine.
test.each(suites)(
  'the short form of the bench of $suite prints every figure',
  async ({ suite, bars }) => {
    needTools(...programs)
    const { stdout } = await promisify(execFile)(process.execPath, ['bench/run.ts', suite, '--short'], {
      cwd: root,
    })
    expect(stdout).not.toMatch(/NaN|Infinity|undefined/)
    expect(stdout.split('\n').filter((line) => /\| (met|\*\*missed\*\*) \|$/.test(line))).toHaveLength(bars)
  },
  600_000,
)
