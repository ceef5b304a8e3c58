/** Names for the files of an archive: without directories, and with a number where a name occurs again. */
export function uniqueNames(names: readonly string[]): string[] {
  const used = new Set<string>()
  return names.map((name) => {
    const plain = name.replace(/[/\\]/g, '_').replace(/^\.+$/, '_') || '_'
    const dot = plain.lastIndexOf('.')
    const [stem, extension] = dot > 0 ? [plain.slice(0, dot), plain.slice(dot)] : [plain, '']
    let unique = plain
    for (let number = 2; used.has(unique.toLowerCase()); number += 1)
      unique = `${stem} (${number})${extension}`
    used.add(unique.toLowerCase())
    return unique
  })
}
