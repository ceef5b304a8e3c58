import type { Media } from '@mediabucket/client'
import { downloadZip } from 'client-zip'
import { isNotFound } from '../service/connection.ts'
import type { FileAccess } from '../service/file-access.ts'

/** Larger archives are written to a file directly, if the browser can. Bytes. */
const maxInMemory = 500_000_000

declare global {
  interface Window {
    /** Not in all browsers. */
    showSaveFilePicker?(options: { suggestedName: string }): Promise<{
      createWritable(): Promise<WritableStream>
    }>
  }
}

/**
 * Downloads files as one ZIP archive. Resolves to the number of files that others have deleted, which the archive does not have; null if the person
 * does not choose where to store a large archive. Rejects if a file cannot be downloaded.
 */
export async function saveAsZip(
  media: readonly Media[],
  name: string,
  files: Pick<FileAccess, 'bytes'>,
  signal: AbortSignal,
): Promise<number | null> {
  const names = uniqueNames(media.map(({ id, filename }) => filename ?? id))
  let missing = 0
  async function* entries() {
    for (const [index, item] of media.entries()) {
      const input = await unlessDeleted(files.bytes(item, { signal }))
      if (input === null) missing += 1
      else yield { name: names[index] ?? item.id, input, lastModified: new Date(item.created_at) }
    }
  }
  const total = media.reduce((sum, { size }) => sum + size, 0)
  if (total > maxInMemory && window.showSaveFilePicker) {
    const file = await window.showSaveFilePicker({ suggestedName: name }).catch(nullIfCancelled)
    if (file === null) return null
    await downloadZip(entries()).body?.pipeTo(await file.createWritable(), { signal })
    return missing
  }
  const archive = URL.createObjectURL(await downloadZip(entries()).blob())
  const link = document.createElement('a')
  link.href = archive
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(archive), 60_000)
  return missing
}

const unlessDeleted = (bytes: Promise<Response>): Promise<Response | null> =>
  bytes.catch((error: unknown) => {
    if (isNotFound(error)) return null
    throw error
  })

/** The browser rejects with this error if the person closes the dialog. */
function nullIfCancelled(error: unknown): null {
  if (error instanceof DOMException && error.name === 'AbortError') return null
  throw error
}

/** Names of devices of Windows, with any extension. */
const device = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?=[ .]*(?:\.|$))/i

/** A name that every system can store: without directories, drives, streams, devices, and without dots and spaces that Windows removes. */
function fileName(name: string): string {
  const plain = name
    .replace(/[/\\:*?"<>|\p{Cc}]/gu, '_')
    .replace(/[ .]+$/, '')
    .replace(device, '$&_')
  return plain || '_'
}

/** Names for the files of an archive, with a number where a name occurs again. */
export function uniqueNames(names: readonly string[]): string[] {
  const used = new Set<string>()
  /** The lowest number that a name may still get, by the name in lower case. */
  const nextNumbers = new Map<string, number>()
  return names.map((name) => {
    const plain = fileName(name)
    const dot = plain.lastIndexOf('.')
    const [stem, extension] = dot > 0 ? [plain.slice(0, dot), plain.slice(dot)] : [plain, '']
    const key = plain.toLowerCase()
    let number = nextNumbers.get(key) ?? 2
    let unique = plain
    for (; used.has(unique.toLowerCase()); number += 1) unique = `${stem} (${number})${extension}`
    nextNumbers.set(key, number)
    used.add(unique.toLowerCase())
    return unique
  })
}
