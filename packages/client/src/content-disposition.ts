/** Names that can stand between quotes as they are. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

/** What RFC 8187 lets stand unescaped, of what encodeURIComponent leaves alone. */
const unsafe = /['()*]/g

/** The header that carries a file's name (RFC 6266, and RFC 8187 for what is not plain ASCII). */
export const contentDisposition = (filename: string): string => `attachment; ${filenameParameter(filename)}`

/** The parameter alone. */
export function filenameParameter(filename: string): string {
  if (plain.test(filename) && !filename.includes('%')) return `filename="${filename}"`
  // Half a surrogate pair has no UTF-8 form, and encodeURIComponent throws on it.
  const escaped = encodeURIComponent(filename.replace(/\p{Surrogate}/gu, '\ufffd')).replace(
    unsafe,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `filename*=UTF-8''${escaped}`
}
