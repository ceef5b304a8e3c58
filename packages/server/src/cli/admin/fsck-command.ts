import { setTimeout as sleep } from 'node:timers/promises'
import { parse, UsageError } from '@mediabucket/cli/command'
import { createItemProgress, formatCount, formatSize, jsonLine } from '@mediabucket/cli/terminal'
import { parseDuration } from '../../core/times.ts'
import {
  DataLockedError,
  lockData,
  openBlobInspection,
  openBlobs,
  openBlobsDirectory,
  openInspection,
  watchBackupHold,
} from '../../storage/engines.ts'
import { requireBlobsDirectory, requireReadableBlobs } from '../../upkeep/blobs-identity.ts'
import { type Finding, findingKinds } from '../../upkeep/findings.ts'
import { checkData, type DataReport } from '../../upkeep/fsck.ts'
import type { Command } from '../command.ts'
import { requireData, withCatalog } from './open-catalog.ts'

export const fsck: Command = {
  help: `Usage: mediabucket fsck [--repair] [--verify-bytes] [--json] [--grace DURATION]

Finds items without bytes, orphans (bytes without an item), wrong sizes, counters, totals and ranks, and the remains of
uploads and deletes. Works while the service is running. The exit code is 0 if nothing is wrong or all faults were repaired,
1 if faults remain.

Options:
  --repair          Correct counters, complete deletes, and move orphans to lost+found/ in the data directory. Items
                    are never changed or removed.
  --verify-bytes    Read and hash every byte. An item whose bytes have changed responds with 500, until this finds
                    them correct again.
  --json            Print one JSON object.
  --grace DURATION  While the service is running: how long to wait before files of uploads are checked again [5s].`,

  async run(args, { config, print, report }) {
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
    await requireData(config)

    const hold = watchBackupHold(config)
    const inspection = await openInspection(config)
    const progress = createItemProgress('Checked')
    try {
      const found = await withCatalog(config, async (catalog) => {
        const directory = await openBlobsDirectory(config)
        await (values.repair ? requireBlobsDirectory : requireReadableBlobs)({ catalog, directory })
        const blobs = await openBlobs(config)
        const checked = await checkData({
          catalog,
          inspection,
          blobs,
          blobInspection: await openBlobInspection(config),
          isBackupRunning: hold.isHeld,
          quiescence: { lock: () => lockUnlessServed(config), wait: () => sleep(grace) },
          repair: values.repair,
          verifyBytes: values['verify-bytes'],
          onItem: progress.show,
        }).finally(() => blobs.close())
        const faults = remainingFaults(checked)
        await catalog
          .recordUpkeep({ kind: 'fsck', finishedAt: Date.now(), faults })
          .catch((error: unknown) => {
            // Such values can make every change fail.
            if (faults === 0) throw error
            report(
              `This run could not be recorded in the catalog: ${error instanceof Error ? error.message : error}`,
            )
          })
        return checked
      })
      progress.end()
      const options = { repaired: values.repair, verified: values['verify-bytes'] }
      if (values.json) print(jsonLine(toJson(found, options)))
      else for (const line of reportLines(found, options)) print(line)
      if (!found.isClean) process.exitCode = 1
    } finally {
      progress.end()
      await inspection.close()
      hold.close()
    }
  },
}

function lockUnlessServed(config: Parameters<typeof lockData>[0]): ReturnType<typeof lockData> | null {
  // Servers of other machines do not use the lock of this one.
  if (config.blobsUrl !== null) return null
  try {
    return lockData(config)
  } catch (error) {
    if (error instanceof DataLockedError) return null
    throw error
  }
}

interface Options {
  readonly repaired: boolean
  readonly verified: boolean
}

const toJson = (report: DataReport, { repaired, verified }: Options) => ({
  clean: report.isClean,
  items: report.items,
  bytes: report.bytes,
  repair: repaired,
  verified_bytes: verified,
  server_running: report.serverRuns,
  findings: report.findings,
})

const remainingFaults = ({ findings }: DataReport): number =>
  findings.reduce((sum, { count, repaired }) => sum + count - repaired, 0)

/** How many examples of each kind are printed. */
const listed = 5

function* reportLines(report: DataReport, { verified }: Options): Generator<string> {
  const size = formatSize(report.bytes)
  yield `Checked ${formatCount(report.items, 'item')} with ${size}${verified ? ', every byte verified' : ''}.`
  for (const finding of report.findings) yield* findingLines(finding)
  const remaining = remainingFaults(report)
  yield ''
  if (remaining > 0) yield remaining === 1 ? '1 fault remains.' : `${remaining} faults remain.`
  else yield report.findings.length > 0 ? 'All faults were repaired.' : 'No faults were found.'
}

function* findingLines({ code, count, repaired, subjects }: Finding): Generator<string> {
  const { title, cure } = findingKinds[code]
  yield ''
  yield `${title}: ${count}${repaired > 0 ? `, ${repaired} of them repaired` : ''} [${code}]`
  for (const subject of subjects.slice(0, listed)) yield `  ${subject}`
  if (count > listed) yield `  and ${count - listed} more; --json lists them`
  if (repaired < count) yield `  → ${cure}`
}
