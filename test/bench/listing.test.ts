import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { hasTool } from '../harness/tools.ts'

const root = resolve(import.meta.dirname, '../..')
const missing = ['wrk', 'nginx', 'taskset'].filter((tool) => !hasTool(tool))

// Proves that the bench runs; its figures are read by people, on an idle machine.
test.skipIf(missing.length > 0 && !process.env['CI'])(
  `the short form of the bench of listings prints every figure${missing.length > 0 ? ` (missing: ${missing.join(', ')})` : ''}`,
  async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['bench/run.ts', 'listing', '--short'], {
      cwd: root,
    })
    expect(stdout).not.toMatch(/NaN|Infinity|undefined/)
    expect(stdout.split('\n').filter((line) => /\| (met|\*\*missed\*\*) \|$/.test(line))).toHaveLength(13)
  },
  90_000,
)
