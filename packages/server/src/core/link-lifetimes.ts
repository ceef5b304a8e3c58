/** Seconds for which listed URLs are the same. They are valid for one to two of these windows (docs/interface.md H10). */
const linkWindow = 900

/** The expiry of listed URLs, and of links without a lifetime, in seconds since 1970. `now` is in milliseconds. */
export const windowExpiry = (now: number): number => (Math.floor(now / 1000 / linkWindow) + 2) * linkWindow

/** The expiry of a link in seconds since 1970. `now` is in milliseconds, the lifetime in seconds. */
export const linkExpiry = (now: number, lifetime: number): number => Math.ceil(now / 1000) + lifetime
