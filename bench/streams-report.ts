import { atMost, type Bar, measuresOf, reportTables } from './bars.ts'
import { cases, type StreamsResults, titleOf } from './streams.ts'

/** The figures and their required values, as Markdown. */
export function reportStreams({ rows, unreadMemory }: StreamsResults): string {
  const of = measuresOf(rows)
  const slower = (name: (typeof cases)[number]) =>
    of(titleOf('page', name)).p99 / of(titleOf('page', 'quiet')).p99
  const bars: Bar[] = [
    ...cases
      .slice(1)
      .map((name) =>
        atMost(`page of another client, ${name}: p99 against quiet`, slower(name), 3, '×', '1 ×'),
      ),
    atMost('unread streams: resident memory gained', unreadMemory / 1e6, 150, 'MB', ''),
  ]
  return reportTables(bars, rows)
}
