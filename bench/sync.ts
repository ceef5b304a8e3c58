import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeToken } from '../test/harness/token.ts'
import { atMost, barTable } from './bars.ts'
import { startMediabucket, writePackage } from './mediabucket.ts'

interface SyncRun {
  readonly name: string
  /** Seconds. */
  readonly seconds: number
  /** The largest resident memory of the command. MB. */
  readonly peak: number
}

/** Small files, of which each directory has the same share. */
const directoryCount = 1_000

/** Prints the peak of a process at its end, in kB. That of getrusage would include the process that started it. */
const peakModule = `data:text/javascript,${encodeURIComponent(
  `process.on('exit', () => {
    const status = process.getBuiltinModule('node:fs').readFileSync('/proc/self/status', 'utf8')
    console.error('peak=' + /VmHWM:\\s+(\\d+)/.exec(status)[1])
  })`,
)}`

/** Synchronizes a directory of `files` small files to an empty bucket and back, again without changes, and deletes all of them on both sides. */
export async function benchSync(
  { files }: { readonly files: number },
  report: (text: string) => void,
): Promise<readonly SyncRun[]> {
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  const at = (name: string) => join(scratch, name)
  const service = await startMediabucket(
    at('data'),
    { MEDIABUCKET_LOG_LEVEL: 'warn' },
    'mediabucket',
    'together',
  )
  try {
    const program = await writePackage(at('program'))
    const { token } = await makeToken({ data: at('data') }, '--bucket', 'sync')
    const runs: SyncRun[] = []
    const run = async (name: string, ...args: string[]) => {
      const began = performance.now()
      const child = spawn(process.execPath, ['--import', peakModule, program, 'sync', ...args], {
        env: {
          ...{ PATH: process.env['PATH'], XDG_STATE_HOME: at('state'), XDG_CONFIG_HOME: at('config') },
          ...{ MEDIABUCKET_URL: service.url, MEDIABUCKET_TOKEN: token },
        },
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      let printed = ''
      child.stderr.on('data', (chunk) => {
        printed += chunk
      })
      const [code]: unknown[] = await once(child, 'close')
      if (code !== 0) throw new Error(`${name} ended with ${code}: ${printed}`)
      const peak = (Number(/peak=(\d+)/.exec(printed)?.[1]) * 1_024) / 1e6
      runs.push({ name, seconds: (performance.now() - began) / 1_000, peak })
      report(`${name}: ${peak.toFixed(0)} MB`)
    }
    writeFiles(at('files'), files)
    await run('up', at('files'))
    await run('up again', at('files'))
    await run('down', '--down', at('copy'))
    await run('down again, with --delete', '--down', at('copy'), '--delete')
    rmSync(at('state'), { recursive: true })
    await run('up without state, which reads all files', at('files'))
    rmSync(at('files'), { recursive: true })
    mkdirSync(at('files'))
    await run('up of an empty directory, with --delete', at('files'), '--delete')
    await run('down of an empty bucket, with --delete', '--down', at('copy'), '--delete')
    return runs
  } finally {
    await service.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

function writeFiles(directory: string, count: number): void {
  for (let index = 0; index < count; index += 1) {
    const folder = join(directory, `folder ${index % directoryCount}`)
    if (index < directoryCount) mkdirSync(folder, { recursive: true })
    const file = join(folder, `file number ${index}.txt`)
    writeFileSync(file, `content ${index}`)
    // Files that have changed in the last seconds are read again.
    utimesSync(file, 1_700_000_000 + index, 1_700_000_000 + index)
  }
}

export const reportSync = (runs: readonly SyncRun[]): string =>
  [
    ...barTable(runs.map(({ name, peak }) => atMost(`${name}, largest memory`, peak, 256, 'MB', ''))),
    '',
    `${runs.map(({ name, seconds }) => `${name}: ${seconds.toFixed(1)} s`).join('; ')}.`,
  ].join('\n')
