import { parseArgs } from 'node:util'
import bundleService from '../harness/bundle.ts'
import installTools from '../harness/tools.ts'
import type { Verdict } from './fault.ts'
import type { FaultRow } from './faults.ts'

// npm run test:faults -- --rounds 200: every fault in its long form; --fault WORD selects the faults with that word in
// their title.

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '200' }, fault: { type: 'string', default: '' } },
})
const asked = Number(values.rounds)
if (!Number.isInteger(asked) || asked < 1) throw new Error('--rounds takes a whole number from 1')

interface Line {
  readonly title: string
  /** Null if the machine lacks a tool or permission that the fault needs. */
  readonly verdict: Verdict | null
}

async function runRow(fault: FaultRow): Promise<Line> {
  const { title } = fault
  if (!(await fault.isPossible())) return { title, verdict: null }
  const rounds = Math.max(fault.short, Math.ceil((fault.perHundred * asked) / 100))
  const began = performance.now()
  const print = (text: string) =>
    console.error(
      `${String(Math.round((performance.now() - began) / 1000)).padStart(4)} s  ${title}: ${text}`,
    )
  print(`${rounds} rounds`)
  let done = 0
  const verdict = await fault
    .run(rounds, () => {
      done += 1
      if (done % 10 === 0) print(`${done} done`)
    })
    .catch((error: unknown) => failed(error))
  for (const what of verdict.faults) print(what)
  print(`${verdict.rounds} rounds, ${verdict.acknowledged} acknowledged, ${verdict.faults.length} faults`)
  return { title, verdict }
}

const failed = (error: unknown): Verdict => ({
  rounds: 0,
  acknowledged: 0,
  lost: 0,
  halfVisible: 0,
  returned: 0,
  faults: [error instanceof Error ? (error.stack ?? error.message) : String(error)],
})

const columns = ['rounds', 'acknowledged', 'lost', 'in part', 'listed again'] as const

function* table(lines: readonly Line[]): Generator<string> {
  const width = Math.max(...lines.map(({ title }) => title.length))
  yield `${'fault'.padEnd(width)}  ${columns.join('  ')}`
  for (const { title, verdict } of lines) {
    if (verdict === null) {
      yield `${title.padEnd(width)}  not run: this machine lacks what it needs`
      continue
    }
    const { rounds, acknowledged, lost, halfVisible, returned, faults } = verdict
    const cells = [rounds, acknowledged, lost, halfVisible, returned].map((count, at) =>
      String(count).padStart(columns[at]?.length ?? 0),
    )
    yield `${title.padEnd(width)}  ${cells.join('  ')}${faults.length > 0 ? '  FAILED' : ''}`
  }
}

installTools()
// A copy of the service, which later changes of the sources do not change.
await bundleService()
// These look for the installed programs when they are imported.
const { clusterFaults, kills, otherFaults, randomKills } = await import('./faults.ts')
const { default: prepareCeph } = await import('../harness/ceph.ts')
const endCeph = await prepareCeph()
const { default: preparePostgres } = await import('../harness/postgres.ts')
const endPostgres = await preparePostgres()
const lines: Line[] = []
for (const fault of [...randomKills, ...kills, ...otherFaults, ...clusterFaults])
  if (fault.title.includes(values.fault)) lines.push(await runRow(fault))
await endCeph()
await endPostgres()
for (const line of table(lines)) console.log(line)
const isSkipped = lines.some(({ verdict }) => verdict === null) && process.env['CI'] !== undefined
if (isSkipped || lines.some(({ verdict }) => verdict !== null && verdict.faults.length > 0))
  process.exitCode = 1
