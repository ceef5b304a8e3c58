import { UsageError } from '../command.ts'

/** An id or a URL as it was given; throws UsageError for what is neither, before anything is asked of the service. */
export function itemReference(text: string): string {
  if (/^[\w~-][\w.~=-]*$/.test(text)) return text
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text
  throw new UsageError(
    `${JSON.stringify(text)} is neither the ID nor the URL of an item; see: mediabucket ls`,
  )
}
