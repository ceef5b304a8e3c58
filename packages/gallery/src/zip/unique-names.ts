/** Names for the files of an archive: without directories, and with a number where a name occurs again. */
export function uniqueNames(names: readonly string[]): string[] {
  const used = new Set<string>()
  /** The lowest number that a name may still get, by the name in lower case. */
  const nextNumbers = new Map<string, number>()
  return names.map((name) => {
    const plain = name.replace(/[/\\]/g, '_').replace(/^\.+$/, '_') || '_'
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
