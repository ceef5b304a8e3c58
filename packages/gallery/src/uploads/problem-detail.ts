/** What a problem (RFC 9457) says to people; null when the text is none. */
export function problemDetail(body: string): string | null {
  try {
    const problem: unknown = JSON.parse(body)
    if (typeof problem !== 'object' || problem === null) return null
    if ('detail' in problem && typeof problem.detail === 'string') return problem.detail
    if ('title' in problem && typeof problem.title === 'string') return problem.title
    return null
  } catch {
    return null
  }
}
