import type { Media } from '@mediabucket/client'
import { maxListLimit } from '@mediabucket/client/rules'
import type { ClientContext } from './client-command.ts'
import { CommandError } from './command.ts'
import { itemThatCounts } from './item-paths.ts'
import type { LocalFault, LocalFile } from './local-files.ts'
import { comparePaths, type TreeFile } from './local-tree.ts'
import { formatCount } from './terminal.ts'

/** What is synchronized, and how. */
export interface SyncArguments {
  readonly directory: string
  /** The paths in the bucket begin with it: empty, or with a slash at its end. */
  readonly folder: string
  readonly isDryRun: boolean
  /** Which files or items that the other side does not have are deleted: none, those that an earlier run knew, or all. */
  readonly deletes: 'none' | 'known' | 'all'
  /** How many at most; null for half of those that are known, or ten. */
  readonly maxDeletes: number | null
  readonly isJson: boolean
  /** Of a path in the bucket. */
  readonly isExcluded: (path: string) => boolean
}

/** What was not transferred or deleted. */
export interface SyncFault extends LocalFault {
  /** The path in the bucket; empty for the directory itself. */
  readonly key: string
}

/** The result of comparing both sides once. */
export interface SyncOutcome {
  /** Files of the side that is copied, as far as both sides were compared. */
  readonly examined: number
  readonly unchanged: number
  readonly sent: { readonly files: number; readonly bytes: number }
  /** How many of them replaced another one. */
  readonly replaced: number
  readonly deleted: number
  readonly failed: readonly SyncFault[]
  /** How many of the failed files do not exist any more. */
  readonly vanished: number
  readonly untried: number
  /** What the other side does not have and was not deleted, because no earlier run knew it or it has changed since. */
  readonly leftAlone: number
  /** Items of the bucket without a path; null if they were not counted. */
  readonly withoutPath: number | null
  /** Why nothing was deleted; null if nothing was to be deleted, or it was. */
  readonly refusal: string | null
  /** The error that ended the run early, or null. */
  readonly end: unknown
}

/** Fewer can always be deleted. */
export const fewDeletes = 10

/**
 * Why these paths are not deleted; null if they are. An empty directory, such as that of a disk that is not mounted, must not delete everything.
 * `known` are the paths that the side had and an earlier run knew.
 */
export function refuseDeletes(
  { deletes, maxDeletes, isDryRun }: Pick<SyncArguments, 'deletes' | 'maxDeletes' | 'isDryRun'>,
  count: number,
  known: number,
): string | null {
  const verb = isDryRun ? 'would be' : 'is'
  if (maxDeletes !== null && count > maxDeletes)
    return `Nothing ${verb} deleted: --max-delete allows ${maxDeletes}, and ${formatCount(count, 'path')} would be deleted.`
  if (maxDeletes !== null || deletes === 'all' || known <= fewDeletes || count * 2 <= known) return null
  return `Nothing ${verb} deleted: the other side does not have ${count} of the ${formatCount(known, 'path')} that the last run knew. Check that its disk is mounted and that --folder is right. To delete them: --max-delete ${count}`
}

/** Prints the changes of a run. If the output is closed, the run goes on. */
export function changePrinter({ isJson }: SyncArguments, { output }: Pick<ClientContext, 'output'>) {
  return async (action: 'upload' | 'download' | 'replace' | 'delete', path: string): Promise<void> => {
    if (output.closed.aborted) return
    await (isJson ? output.json([{ action, path }]) : output.lines([[action, path]])).catch(() => {})
  }
}

/** The item of a path that counts: the one that has it as its key, otherwise the newest. */
export interface CountedItem<Item = Media> {
  readonly item: Item
  readonly path: string
  /** The others with this path, oldest first. */
  readonly others: readonly Pick<Media, 'id' | 'sha256'>[]
}

/** The item of each path in the folder that counts, in the order of the paths. */
export async function* countedOfPaths(
  { folder }: Pick<SyncArguments, 'folder'>,
  { client, interrupted }: Pick<ClientContext, 'client' | 'interrupted'>,
): AsyncGenerator<CountedItem> {
  let same: Media[] = []
  const options = { path: folder, keys: true, batchSize: maxListLimit, signal: interrupted }
  for await (const item of client.items(options)) {
    // An earlier version of the service ignores the parameter.
    if (item.path == null)
      throw new CommandError('the service does not keep the paths of files. Install its newest version.')
    if (same.length > 0 && same[0]?.path !== item.path) {
      yield* countedOf(same)
      same = []
    }
    same.push(item)
  }
  yield* countedOf(same)
}

/** Of items with the same path, in the order of their upload. */
function countedOf(items: readonly Media[]): readonly CountedItem[] {
  const item = itemThatCounts(items)
  if (item?.path == null) return []
  const others = items.filter(({ id }) => id !== item.id).map(({ id, sha256 }) => ({ id, sha256 }))
  return [{ item, path: item.path, others }]
}

/** A path with the file and the item that it has; one of them may be null. */
export interface Pair<There> {
  readonly path: string
  readonly file: LocalFile | null
  readonly there: There | null
}

/** Pairs files and items that are both in the order of their paths. */
export async function* pairByPath<There extends { readonly path: string }>(
  files: AsyncGenerator<TreeFile, void, void>,
  items: AsyncGenerator<There, void, void>,
): AsyncGenerator<Pair<There>, void, void> {
  try {
    let [file, item] = await Promise.all([files.next(), items.next()])
    while (!file.done || !item.done) {
      const here = file.done ? null : file.value
      const there = item.done ? null : item.value
      const order = here && there ? comparePaths(here.path, there.path) : here ? -1 : 1
      const [usesFile, usesItem] = [order <= 0, order >= 0]
      yield {
        path: (usesFile ? here?.path : there?.path) ?? '',
        file: usesFile ? (here?.file ?? null) : null,
        there: usesItem ? there : null,
      }
      ;[file, item] = await Promise.all([usesFile ? files.next() : file, usesItem ? items.next() : item])
    }
  } finally {
    await Promise.allSettled([files.return(), items.return()])
  }
}
