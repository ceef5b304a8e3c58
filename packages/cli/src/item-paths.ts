import type { ItemOptions, Media } from '@mediabucket/client'
import { cleanPath, maxListLimit } from '@mediabucket/client/rules'
import type { ClientContext } from './client-command.ts'
import { CommandError, exitCodes, UsageError } from './command.ts'
import { shellWord } from './processes.ts'

/** A path of items, as commands take it. */
export interface ItemPath {
  /** As it was given, for messages. */
  readonly text: string
  /** Of an item; of a folder it has a slash at its end, and is empty for all items that have a path. */
  readonly path: string
  readonly isFolder: boolean
}

/**
 * Reads a path, which has a slash, as no id has: `album/a.jpg`, `./a.jpg` for an item outside of folders, `album/` for a folder, `./` for all. Null for
 * an id, and for anything with a colon before its first slash, as a URL. Throws UsageError for a path that no item has.
 */
export function readPath(text: string): ItemPath | null {
  // A malformed URL may contain a password, which messages must not repeat.
  return !text.includes('/') || /^[^/]*:/.test(text) ? null : readAnyPath(text)
}

/** The same for a text that is always a path, also without a slash. */
export function readAnyPath(text: string): ItemPath {
  const isFolder = /(^|\/)\.?$/.test(text)
  const bare = text.replace(/\/+$/, '')
  if (isFolder && (bare === '' || bare === '.')) return { text, path: '', isFolder }
  const names = bare.replace(/^\.\//, '').split('/')
  const isPlain = names.every((name) => name !== '' && name !== '.' && name !== '..')
  const path = isPlain ? cleanPath(`./${names.join('/')}`) : null
  if (path === null || path === '')
    throw new UsageError(
      `${JSON.stringify(text)} is neither the ID nor the URL nor the path of an item. See: mediabucket ls`,
    )
  return { text, path: isFolder ? `${path}/` : path, isFolder }
}

type Connection = Pick<ClientContext, 'client' | 'interrupted'>

/** Of the items with one path, oldest first, the one that counts: the one that has the path as its key, otherwise the newest. */
export const itemThatCounts = (items: readonly Media[]): Media | null =>
  items.findLast(({ key, path }) => key != null && key === path) ?? items.at(-1) ?? null

/** The items of a folder in the order of their paths, or all items with the path of one, oldest first. */
export async function* itemsAt(
  { path, isFolder }: ItemPath,
  { client, interrupted }: Connection,
  { keys }: Pick<ItemOptions, 'keys'> = {},
): AsyncGenerator<Media, void, void> {
  const batchSize = isFolder ? maxListLimit : 10
  for await (const item of client.items({ path, keys, batchSize, signal: interrupted })) {
    // Longer paths with the same start follow.
    if (!isFolder && item.path !== path) return
    yield item
  }
}

/** The item with a path that counts; null if there is none. */
async function countedAt(path: ItemPath, connection: Connection): Promise<Media | null> {
  const found: Media[] = []
  for await (const item of itemsAt(path, connection, { keys: true })) found.push(item)
  return itemThatCounts(found)
}

/** Reads the references of a command that takes single items: ids, URLs and paths. Throws UsageError. */
export function readItem(text: string, read: (text: string) => string): string | ItemPath {
  const path = readPath(text)
  if (path?.isFolder === true)
    throw new UsageError(`${text} is a folder, and this needs an item. See: mediabucket ls ${pathWord(text)}`)
  return path ?? read(text)
}

/** The id of the item with a path that counts; other references unchanged. Throws CommandError if there is no such item. */
export async function resolveItem(reference: string | ItemPath, connection: Connection): Promise<string> {
  if (typeof reference === 'string') return reference
  const item = await countedAt(reference, connection)
  if (item === null) throw noItemAt(reference)
  return item.id
}

/**
 * What a name stands for that is no item, as a sentence after that of the error: a folder, or an item outside of folders. Empty for anything else,
 * and for what has the form of an id. `command` is the one that takes the folder, which it receives as a word of a shell.
 */
export async function hintAt(
  text: string,
  command: (folder: string) => string,
  { client, interrupted }: Connection,
): Promise<string> {
  const path = /[:?#]|\/$|^\w{26}$/.test(text) ? null : cleanPath(`./${text.replace(/^\.\//, '')}`)
  if (path === null || path === '') return ''
  try {
    for await (const _ of client.items({ path: `${path}/`, batchSize: 1, signal: interrupted }))
      return ` ${text} is a folder: mediabucket ${command(pathWord(`${text}/`))}`
    for await (const _ of itemsAt({ text, path, isFolder: false }, { client, interrupted }))
      return ` The path of the item is ./${path}`
  } catch (error) {
    // The token may be one that must not list items.
    if (interrupted.aborted || !(error instanceof Error)) throw error
  }
  return ''
}

/** A path as a word of a command for a shell. One that starts with a hyphen would be read as options. */
export const pathWord = (path: string): string => shellWord(path.startsWith('-') ? `./${path}` : path)

export const noItemAt = ({ text, isFolder }: ItemPath): CommandError =>
  new CommandError(
    isFolder
      ? `the bucket has no items below ${JSON.stringify(text)}. See: mediabucket ls -R`
      : `the bucket has no item with the path ${JSON.stringify(text)}. See: mediabucket ls -R`,
    exitCodes.notFound,
  )
