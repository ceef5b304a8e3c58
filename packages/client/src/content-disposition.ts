/** Names that need no escape between quotes. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

/** Characters that encodeURIComponent does not escape and RFC 8187 requires to be escaped. */
const unsafe = /['()*]/g

/** The header with a file's name (RFC 6266; RFC 8187 for names that are not plain ASCII). */
export const contentDisposition = (filename: string): string => `attachment; ${filenameParameter(filename)}`

/** The parameter with a file's name. */
export function filenameParameter(filename: string): string {
  if (plain.test(filename) && !filename.includes('%')) return `filename="${filename}"`
  // encodeURIComponent throws on half a surrogate pair, which has no UTF-8 form.
  const escaped = encodeURIComponent(filename.replace(/\p{Surrogate}/gu, '\ufffd')).replace(
    unsafe,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `filename*=UTF-8''${escaped}`
}
