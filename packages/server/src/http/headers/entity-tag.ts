/** One member of a list of entity tags (RFC 9110, sections 8.8.3 and 5.6.1); sticky, so that reading is linear. */
const listed = /[ \t,]*(?<weak>W\/)?(?<opaque>"[\x21\x23-\x7e\x80-\xff]*")[ \t]*(?=,|$)/y

/** Whether If-None-Match names `tag`, by weak comparison (RFC 9110, section 13.1.2). `*` names any. */
export function matchesWeakly(header: string, tag: string): boolean {
  const opaque = tag.startsWith('W/') ? tag.slice(2) : tag
  return some(header, (found) => found === opaque)
}

/** Whether If-Match names `tag`, by strong comparison (RFC 9110, section 13.1.1). `*` names any. */
export function matchesStrongly(header: string, tag: string): boolean {
  return some(header, (found, weak) => !weak && found === tag)
}

/** Tags behind something that is no tag are not looked at: what cannot be read matches nothing. */
function some(header: string, matches: (opaque: string, weak: boolean) => boolean): boolean {
  if (header.trim() === '*') return true
  const tag = new RegExp(listed)
  for (let found = tag.exec(header); found !== null; found = tag.exec(header)) {
    if (matches(found.groups?.['opaque'] ?? '', found.groups?.['weak'] !== undefined)) return true
  }
  return false
}
