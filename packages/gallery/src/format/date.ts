const dates = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' })

/** A moment of RFC 3339 in the reader's own time; as it is when it is none. */
export function formatDate(moment: string): string {
  const date = new Date(moment)
  return Number.isNaN(date.getTime()) ? moment : dates.format(date)
}
