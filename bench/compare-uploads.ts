import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDatabases, unmetLimits } from './mediabucket.ts'
import { small, uploading } from './small-uploads.ts'
import { type Measure, measure, median, startSubject } from './subject.ts'

// node bench/compare-uploads.ts sqlite|postgres ROUNDS SECONDS NAME=PROGRAM…: the CPU of the service for an upload of 10 kB, of several
// versions in turn, each round in the reverse order of the one before. A program is bin/mediabucket.js of a clone.

const [engine = '', rounds = '', seconds = '', ...programs] = process.argv.slice(2)
await using stack = new AsyncDisposableStack()
const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
stack.defer(() => rmSync(scratch, { recursive: true, force: true }))
const databases = engine === 'postgres' ? await startDatabases(scratch, 'apart') : null
if (databases) stack.defer(databases.stop)
const cases = []
for (const [index, program] of programs.entries()) {
  const [name = '', bin = ''] = program.split('=')
  const url = await databases?.open(`version_${index}`)
  let token = ''
  const subject = await startSubject(
    name,
    ['node', bin, 'serve'],
    {
      ...unmetLimits,
      MEDIABUCKET_DATA: join(scratch, `data-${index}`),
      MEDIABUCKET_PORT: '0',
      MEDIABUCKET_LOG_LEVEL: 'warn',
      ...(url !== undefined && { MEDIABUCKET_DATABASE_URL: url }),
    },
    (printed) => {
      token = /mbkt_\w+/.exec(printed)?.[0] ?? ''
      return token === '' ? null : (/ready at (\S+)/.exec(printed)?.[1] ?? null)
    },
  )
  stack.defer(subject.stop)
  const run = () => measure(subject, '/', { ...uploading(32, small, token), seconds: Number(seconds) })
  cases.push({ name, run, taken: [] as Measure[] })
}
const [first] = cases
// The first round is a warm-up.
for (let round = 0; round <= Number(rounds); round += 1) {
  for (const { name, run, taken } of cases) {
    const measured = await run()
    if (round > 0) taken.push(measured)
    console.error(`round ${round}: ${name}: ${(measured.cpuPerRequest * 1e6).toFixed(1)} µs of CPU`)
  }
  cases.reverse()
}
for (const { name, taken } of cases.toSorted((one) => (one === first ? -1 : 1))) {
  const cpu = median(taken.map(({ cpuPerRequest }) => cpuPerRequest)) * 1e6
  // Of the same round, because the machine and the caches change from round to round.
  const ratio = median(
    taken.map(({ cpuPerRequest }, round) => cpuPerRequest / (first?.taken[round]?.cpuPerRequest ?? 0)),
  )
  const perSecond = median(taken.map((one) => one.perSecond))
  console.log(
    `${engine}, ${name}: ${cpu.toFixed(1)} µs of CPU, ${ratio.toFixed(3)} × ${first?.name} of the same round, ${perSecond.toFixed(0)} uploads/s`,
  )
}
