/** The header with which a reverse proxy is asked to send a file itself. */
export type SendFile =
  | { readonly header: 'x-sendfile' }
  /** The proxy finds the file below this path, which begins with a slash and does not end with one. */
  | { readonly header: 'x-accel-redirect'; readonly prefix: string }

/** `off`, `x-sendfile`, or `x-accel-redirect:` and a path. Undefined for any other text. */
export function parseSendFile(text: string): SendFile | null | undefined {
  if (text === 'off') return null
  if (text === 'x-sendfile') return { header: 'x-sendfile' }
  const prefix = /^x-accel-redirect:((?:\/[\w.-]+)+)\/?$/.exec(text)?.[1]
  return prefix === undefined ? undefined : { header: 'x-accel-redirect', prefix }
}

/** The value of the header for the absolute path of an item's file: nginx gets the last two parts of it, `shard/id`. */
export const sendFileValue = (sendFile: SendFile, path: string): string =>
  sendFile.header === 'x-sendfile' ? path : [sendFile.prefix, ...path.split('/').slice(-2)].join('/')
