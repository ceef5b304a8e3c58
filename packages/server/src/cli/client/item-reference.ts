import { UsageError } from '../command.ts'

/** Returns an id or a URL unchanged. Throws UsageError for anything else, before any request. */
export function itemReference(text: string): string {
  if (/^[\w~-][\w.~=-]*$/.test(text)) return text
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text
  throw new UsageError(
    `${JSON.stringify(text)} is neither the ID nor the URL of an item. See: mediabucket ls`,
  )
}
