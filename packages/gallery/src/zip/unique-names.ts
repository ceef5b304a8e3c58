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
