import { existsSync } from 'node:fs'
import { CommandError } from '@mediabucket/cli/command'
import { openBlobsDirectory, readBlobsOwner, requireDataDirectory } from '../storage/engines.ts'
import { requireOwnBlobs } from '../upkeep/blobs-identity.ts'
import { requireNoRestore } from '../upkeep/interrupted-restore.ts'
import type { CommandContext } from './command.ts'

/**
 * Reports the warnings about settings that are valid. With `connects`, also checks the data directory and connects to the database, the
 * store and the scanner, and changes nothing there. A service may use them. Throws CommandError if the store or the scanner cannot be reached, and the errors with which a start
 * refuses the catalog, or the bytes that do not belong to it.
 */
export async function checkSettings(
  { config, warnings, print, report }: CommandContext,
  connects: boolean,
): Promise<void> {
  if (warnings.length > 0) report(...warnings)
  if (connects) {
    requireDataDirectory(config)
    if (process.getuid?.() === 0 && !existsSync(config.data))
      report(
        `${config.data} does not exist yet, and only root was checked: it can create the directory. If the service has another user, run this as that user too.`,
      )
    requireNoRestore(config.data)
    const owner = (await readBlobsOwner(config)) ?? { identity: null, items: [] }
    if (config.blobsUrl !== null) await connectToStore(config)
    await requireOwnBlobs(owner, await openBlobsDirectory(config))
    await connectToScanner(config)
  }
  print(connects ? 'The settings are valid, and what they name can be reached.' : 'The settings are valid.')
}

async function connectToStore(config: CommandContext['config']): Promise<void> {
  const directory = await openBlobsDirectory(config)
  try {
    await directory.readIdentity()
  } catch (error) {
    throw new CommandError(
      `${directory.path} cannot be reached: ${reasonOf(error)}. Check MEDIABUCKET_BLOBS_URL and the credentials.`,
    )
  }
}

/** Milliseconds in which the scanner must respond. */
const scannerTimeout = 5_000

/** Throws CommandError if the scanner of uploads does not respond. */
async function connectToScanner(config: CommandContext['config']): Promise<void> {
  // Loaded here, so that a start is faster.
  const { openScanner } = await import('../service/start-scanner.ts')
  try {
    await openScanner(config)?.check(AbortSignal.timeout(scannerTimeout))
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'TimeoutError'
    throw new CommandError(
      `The scanner of uploads does not respond: ${isLate ? `no answer within ${scannerTimeout / 1000} seconds` : reasonOf(error)}. Check MEDIABUCKET_SCAN, and that the scanner runs.`,
    )
  }
}

function reasonOf(error: unknown): string {
  const { cause = error } = error instanceof Error ? error : {}
  return cause instanceof Error ? cause.message : String(cause)
}
