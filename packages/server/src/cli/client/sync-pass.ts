import type { Media } from '@mediabucket/client'
import { CommandError } from '../command.ts'
import type { ClientContext } from './client-command.ts'
import type { LocalFault, LocalFile } from './local-files.ts'
import { comparePaths, type TreeFile } from './local-tree.ts'

/** What is synchronized, and how. */
export interface SyncArguments {
  readonly directory: string
  /** The paths in the bucket begin with it: empty, or with a slash at its end. */
  readonly folder: string
  readonly isDryRun: boolean
  /** Whether files or items that the other side does not have are deleted. */
  readonly deletes: boolean
  /** Of a path in the bucket. */
  readonly isExcluded: (path: string) => boolean
}

/** The result of comparing both sides once. */
export interface SyncOutcome {
  /** Files of the side that is copied. */
  readonly examined: number
  readonly unchanged: number
  readonly sent: { readonly files: number; readonly bytes: number }
  /** How many of them replaced another one. */
  readonly replaced: number
  readonly deleted: number
  readonly failed: readonly LocalFault[]
  /** How many of the failed files do not exist any more. */
  readonly vanished: number
  readonly untried: number
  /** The error that ended the run early, or null. */
  readonly end: unknown
}

/** The newest item of a path. */
export interface NewestItem<Item = Media> {
  readonly item: Item
  readonly path: string
  /** The ids of earlier items with this path. */
  readonly older: readonly string[]
}

/** The newest item of each path in the folder, in the order of the paths. */
export async function* newestOfPaths(
  { folder }: Pick<SyncArguments, 'folder'>,
  { client, interrupted }: Pick<ClientContext, 'client' | 'interrupted'>,
): AsyncGenerator<NewestItem> {
  let same: Media[] = []
  for await (const item of client.items({ path: folder, batchSize: 500, signal: interrupted })) {
    // An earlier version of the service ignores the parameter.
    if (item.path == null)
      throw new CommandError('the service does not keep the paths of files. Install its newest version.')
    if (same.length > 0 && same[0]?.path !== item.path) {
      yield* newestOf(same)
      same = []
    }
    same.push(item)
  }
  yield* newestOf(same)
}

/** Of items with the same path, in the order of their upload. */
function newestOf(items: readonly Media[]): readonly NewestItem[] {
  const item = items.at(-1)
  if (item?.path == null) return []
  return [{ item, path: item.path, older: items.slice(0, -1).map(({ id }) => id) }]
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
