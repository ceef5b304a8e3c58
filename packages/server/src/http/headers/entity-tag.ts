/** One member of a list of entity tags (RFC 9110, sections 8.8.3 and 5.6.1). Sticky, so that parsing takes linear time. */
const listMember = /[ \t,]*(?<weak>W\/)?(?<opaque>"[\x21\x23-\x7e\x80-\xff]*")[ \t]*(?=,|$)/y

/** Whether If-None-Match contains `tag`, by weak comparison (RFC 9110, section 13.1.2). `*` matches every tag. */
export function matchesWeakly(header: string, tag: string): boolean {
  const opaque = tag.startsWith('W/') ? tag.slice(2) : tag
  return anyTagMatches(header, (found) => found === opaque)
}

/** Whether If-Match contains `tag`, by strong comparison (RFC 9110, section 13.1.1). `*` matches every tag. */
export function matchesStrongly(header: string, tag: string): boolean {
  return anyTagMatches(header, (found, weak) => !weak && found === tag)
}

/** Parsing stops at the first malformed member; later tags match nothing. */
function anyTagMatches(header: string, matches: (opaque: string, weak: boolean) => boolean): boolean {
  if (header.trim() === '*') return true
  const tag = new RegExp(listMember)
  for (let found = tag.exec(header); found !== null; found = tag.exec(header)) {
    if (matches(found.groups?.['opaque'] ?? '', found.groups?.['weak'] !== undefined)) return true
  }
  return false
}
