/** Who sends the bytes of large items instead of the service. */
export type SendFile =
  /** A reverse proxy sends files. */
  | { readonly header: 'x-sendfile' }
  /** The same, and it gets objects of a store. It finds both below this path, which begins with a slash and does not end with one. */
  | { readonly header: 'x-accel-redirect'; readonly prefix: string }
  /** Clients get objects from the store. */
  | { readonly header: 'location' }

/** `off`, `redirect`, `x-sendfile`, or `x-accel-redirect:` and a path. Undefined for any other text. */
export function parseSendFile(text: string): SendFile | null | undefined {
  if (text === 'off') return null
  if (text === 'redirect') return { header: 'location' }
  if (text === 'x-sendfile') return { header: 'x-sendfile' }
  const prefix = /^x-accel-redirect:((?:\/[\w.-]+)+)\/?$/.exec(text)?.[1]
  return prefix === undefined ? undefined : { header: 'x-accel-redirect', prefix }
}
