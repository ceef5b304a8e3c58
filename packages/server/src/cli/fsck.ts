import { setTimeout as pass } from 'node:timers/promises'
import { parseDuration } from '../core/duration.ts'
import {
  DataLockedError,
  hasData,
  lockData,
  openAudit,
  openBlobAudit,
  openBlobs,
  openBlobsDirectory,
  watchBackupHold,
} from '../engines.ts'
import { checkData, type DataReport } from '../upkeep/check-data.ts'
import { type Finding, findingKinds } from '../upkeep/findings.ts'
import { requireBlobsDirectory } from '../upkeep/require-blobs-directory.ts'
import { parse } from './arguments.ts'
import { formatSize } from './client/terminal-text.ts'
import { type Command, CommandError, UsageError } from './command.ts'
import { withCatalog } from './open-catalog.ts'
import { showProgress } from './progress.ts'
import { formatCount } from './table.ts'

export const fsck: Command = {
  summary: 'Check that rows and bytes agree, and repair what does not.',
  help: `Usage: mediabucket fsck [--repair] [--verify-bytes] [--json] [--grace DURATION]

Looks for items without bytes, bytes without an item, wrong sizes, counters, totals and ranks, and for what uploads
and deletes have left behind. Works beside a running server. Exit code 0: all is well, or was repaired; 1: faults
remain.

Options:
  --repair          Count anew what is formatCount, finish deletes, and move what nothing names to lost+found/ in the
                    data directory. Items stay as they are, and nothing is destroyed.
  --verify-bytes    Read and hash every byte. An item whose bytes are not those that were sent answers 500 from then
                    on, until this finds them right again.
  --json            One JSON object on standard output.
  --grace DURATION  For how long uploads under way may be spared a second look beside a running server [5s].`,

  async run(args, { config, print }) {
    const { values } = parse('fsck', {
      args: [...args],
      options: {
        repair: { type: 'boolean', default: false },
        'verify-bytes': { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        grace: { type: 'string', default: '5s' },
      },
    })
    const grace = parseDuration(values.grace)
    if (grace === null)
      throw new UsageError(`--grace takes a duration such as 5s or 1m, not "${values.grace}"`)
    if (!hasData(config))
      throw new CommandError(`there are no data in ${config.data}; set MEDIABUCKET_DATA to where they are`)

    const hold = watchBackupHold(config)
    const audit = await openAudit(config)
    const progress = showProgress('Checked')
    try {
      const report = await withCatalog(config, async (catalog) => {
        await requireBlobsDirectory({ catalog, directory: openBlobsDirectory(config) })
        const checked = await checkData({
          catalog,
          audit,
          blobs: await openBlobs(config),
          blobAudit: await openBlobAudit(config),
          isHeldByBackup: hold.isHeld,
          quiet: { lock: () => lockUnlessServed(config), grace: () => pass(grace) },
          repair: values.repair,
          verifyBytes: values['verify-bytes'],
          onItem: progress.show,
        })
        const faults = remainingFaults(checked)
        await catalog.recordUpkeep({ kind: 'fsck', finishedAt: Date.now(), faults })
        return checked
      })
      progress.end()
      const options = { repaired: values.repair, verified: values['verify-bytes'] }
      if (values.json) print(JSON.stringify(wire(report, options)))
      else for (const line of tellReport(report, options)) print(line)
      if (!report.isClean) process.exitCode = 1
    } finally {
      progress.end()
      await audit.close()
      hold.close()
    }
  },
}

function lockUnlessServed(config: Parameters<typeof lockData>[0]): ReturnType<typeof lockData> | null {
  try {
    return lockData(config)
  } catch (error) {
    if (error instanceof DataLockedError) return null
    throw error
  }
}

interface Asked {
  readonly repaired: boolean
  readonly verified: boolean
}

const wire = (report: DataReport, { repaired, verified }: Asked) => ({
  clean: report.isClean,
  items: report.items,
  bytes: report.bytes,
  repair: repaired,
  verified_bytes: verified,
  server_running: report.serverRuns,
  findings: report.findings.map(({ code, isFault, count, repaired, subjects }) => ({
    code,
    fault: isFault,
    count,
    repaired,
    subjects,
  })),
})

const remainingFaults = ({ findings }: DataReport): number =>
  findings.reduce((sum, { isFault, count, repaired }) => sum + (isFault ? count - repaired : 0), 0)

/** How many of each kind are shown to people. */
const shown = 5

function* tellReport(report: DataReport, { verified }: Asked): Generator<string> {
  const size = formatSize(report.bytes)
  yield `Checked ${formatCount(report.items, 'item')} with ${size}${verified ? ', every byte read' : ''}.`
  for (const finding of report.findings) yield* tellFinding(finding)
  const remaining = remainingFaults(report)
  yield ''
  if (remaining > 0) yield remaining === 1 ? '1 fault remains.' : `${remaining} faults remain.`
  else yield report.findings.some(({ isFault }) => isFault) ? 'All faults were repaired.' : 'All is well.'
}

function* tellFinding({ code, isFault, count, repaired, subjects }: Finding): Generator<string> {
  const { title, cure } = findingKinds[code]
  yield ''
  yield `${title}: ${count}${repaired > 0 ? `, ${repaired} of them repaired` : ''} [${code}]`
  if (!isFault) return
  for (const subject of subjects.slice(0, shown)) yield `  ${subject}`
  if (count > shown) yield `  and ${count - shown} more; --json tells them`
  if (repaired < count) yield `  → ${cure}`
}
