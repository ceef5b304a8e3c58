import { expect, test } from 'vitest'
import { droppedFiles } from '../src/uploads/chosen-files.ts'

/** The content of a drop: text is a file, null a file that cannot be read. */
interface Tree {
  readonly [name: string]: string | null | Tree
}

type Entry = Pick<FileSystemEntry, 'name' | 'fullPath' | 'isFile' | 'isDirectory'>

function entryOf(name: string, content: string | null | Tree, parentPath: string): Entry {
  const fullPath = `${parentPath}/${name}`
  if (content === null || typeof content === 'string') {
    const file = (resolve: (file: File) => void, reject: (error: Error) => void) =>
      content === null ? reject(new Error('NotReadableError')) : resolve(new File([content], name))
    return Object.assign({ name, fullPath, isFile: true, isDirectory: false }, { file })
  }
  const entries = Object.entries(content).map(([childName, child]) => entryOf(childName, child, fullPath))
  const createReader = () => {
    let at = 0
    return {
      readEntries(resolve: (batch: Entry[]) => void, reject: (error: Error) => void) {
        if ('unreadable' in content) return reject(new Error('NotReadableError'))
        // Batches of 100, as in Chromium.
        const batch = entries.slice(at, at + 100)
        at += batch.length
        resolve(batch)
      },
    }
  }
  return Object.assign({ name, fullPath, isFile: false, isDirectory: true }, { createReader })
}

/** The members of a DataTransfer that `droppedFiles` uses. */
function transferOf(tree: Tree): DataTransfer {
  const items = Object.entries(tree).map(([name, content]) => ({
    kind: 'file',
    webkitGetAsEntry: () => entryOf(name, content, ''),
    getAsFile: () => (typeof content === 'string' ? new File([content], name) : null),
  }))
  return { items } as unknown as DataTransfer
}

test('G9 every dropped entry is returned as a file, returned as an unreadable file, or skipped with a reason', async () => {
  const many = Object.fromEntries(Array.from({ length: 250 }, (_, number) => [`${number}.txt`, 'x']))
  const counts: number[] = []
  const { files, skipped } = await droppedFiles(
    transferOf({
      'z.txt': 'alone',
      album: {
        many,
        none: {},
        locked: { unreadable: 'x' },
        'gone.txt': null,
        '.DS_Store': 'x',
        __MACOSX: { '._photo.jpg': 'x' },
        a: { 'same.txt': 'x' },
        b: { 'same.txt': 'x' },
      },
      'a.txt': 'alone',
    }),
    (count) => counts.push(count),
  )
  const paths = files.map(({ path }) => path)
  expect(paths).toEqual([
    'z.txt',
    'album/a/same.txt',
    'album/b/same.txt',
    'album/gone.txt',
    ...Array.from({ length: 250 }, (_, number) => `album/many/${number}.txt`),
    'a.txt',
  ])
  expect(files.filter(({ file }) => file === null).map(({ path }) => path)).toEqual(['album/gone.txt'])
  expect(skipped).toMatchObject({
    system: ['album/__MACOSX', 'album/.DS_Store'],
    emptyFolders: ['album/none'],
    unreadableFolders: ['album/locked'],
  })
  expect(counts.at(-1)).toBe(254)
})
