import { CommandError, parse, UsageError } from '@mediabucket/cli/command'
import { confirm } from '@mediabucket/cli/questions'
import { createItemProgress, formatCount, formatSize } from '@mediabucket/cli/terminal'
import { BucketRemoval, deleteBucket, newDeletionOwner } from '../../buckets/bucket-deletion.ts'
import type { Catalog } from '../../storage/catalog/catalog.ts'
import type { NamedBucket } from '../../storage/catalog/records.ts'
import { openBlobs, openBlobsDirectory, watchBackupHold } from '../../storage/engines.ts'
import { requireBlobsDirectory } from '../../upkeep/blobs-identity.ts'
import type { CommandContext } from '../command.ts'
import { administer, administrationCommand } from './administration.ts'
import { unknownBucket } from './open-catalog.ts'

export const bucketDelete = administrationCommand({
  help: `Usage: mediabucket bucket delete NAME [--yes]

Deletes the bucket with its items, their bytes, its tokens and its unfinished uploads. This cannot be undone. Asks for
confirmation on a terminal. Works while the service is running: the bucket is gone at once, and what it held is removed in
small steps. If the command is interrupted, the service removes the rest, also at its next start.

Options:
  --yes  Do not ask for confirmation. Required without a terminal.`,

  async run(args, context) {
    const { values, positionals } = parse('bucket delete', {
      args: [...args],
      allowPositionals: true,
      options: { yes: { type: 'boolean', default: false } },
    })
    const [name, ...more] = positionals
    if (name === undefined || more.length > 0)
      throw new UsageError('bucket delete takes one NAME. See: mediabucket bucket list')
    await administer(
      context,
      async ({ service }) => {
        const { bucket } = await service.buckets.get(name)
        if (!values.yes) await requireConfirmation(bucket)
        await service.buckets.delete(name, { withItems: true })
        context.report(`Deleted the bucket "${name}" with ${formatCount(bucket.items, 'item')}.`)
      },
      (catalog) => deleteHere(catalog, name, values.yes, context),
    )
  },
})

/** Deletes a bucket of the data, and removes what it held before it returns. */
async function deleteHere(
  catalog: Catalog,
  name: string,
  isConfirmed: boolean,
  { config, report }: Pick<CommandContext, 'config' | 'report'>,
): Promise<void> {
  const bucket = await catalog.findBucketNamed(name)
  if (bucket === null) throw unknownBucket(name)
  await requireBlobsDirectory({ catalog, directory: await openBlobsDirectory(config) })
  if (!isConfirmed) await requireConfirmation(bucket)

  const hold = watchBackupHold(config)
  const progress = createItemProgress('Deleted')
  const leftovers: unknown[] = []
  const blobs = await openBlobs(config)
  try {
    const parts = {
      ...{ catalog, blobs, isBackupRunning: hold.isHeld, now: Date.now },
      onDeletionFailure: (_: unknown, error: unknown) => leftovers.push(error),
    }
    const owner = newDeletionOwner()
    const id = await deleteBucket(parts, name, true, owner)
    if (typeof id !== 'number') throw unknownBucket(name)
    const removal = new BucketRemoval(parts, id, owner)
    while (await removal.step()) progress.show(removal.items, Math.max(removal.items, bucket.items))
    const { items, erased } = removal
    progress.end()
    report(`Deleted the bucket "${name}" with ${formatCount(items, 'item')}.`)
    if (erased < items)
      report(
        `The bytes of ${formatCount(items - erased, 'item')} are still on the disk${leftovers.length === 0 ? ', because a backup is running' : ''}. The next start of the service removes them; mediabucket fsck --repair does too.`,
      )
  } finally {
    progress.end()
    await blobs.close()
    hold.close()
  }
}

async function requireConfirmation({
  name,
  items,
  bytes,
}: Pick<NamedBucket, 'name' | 'items' | 'bytes'>): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new UsageError('bucket delete asks for confirmation on a terminal; without one, pass --yes')
  const question = `Delete the bucket "${name}" with ${formatCount(items, 'item')} (${formatSize(bytes)}) and its tokens? This cannot be undone.`
  if (!(await confirm(question))) throw new CommandError('not confirmed; nothing was deleted')
}
