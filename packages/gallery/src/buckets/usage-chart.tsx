import type { Usage } from '@mediabucket/client'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { Choice } from '../components/controls.tsx'
import { LoadError } from '../components/section.tsx'
import { formatSize } from '../format.ts'
import { useService } from '../gallery-context.ts'
import { errorMessage } from '../service/connection.ts'
import { formatCount, locale } from '../strings/locale.ts'
import { strings } from '../strings.ts'
import { daysAgo } from './usages.ts'

const sparkWidth = 120
const sparkHeight = 24

/** The size of a bucket at the end of each of these days as a line. */
export function Sparkline({ days }: { days: readonly Usage[] | null }) {
  const first = days?.[0]
  const last = days?.at(-1)
  if (!days || !first || !last) return <span class="sparkline" />
  const highest = Math.max(1, ...days.map(({ bytes }) => bytes))
  const points = days.map(({ bytes }, index) => {
    const x = days.length === 1 ? sparkWidth : (index / (days.length - 1)) * sparkWidth
    return `${x.toFixed(1)},${(sparkHeight - 1 - (bytes / highest) * (sparkHeight - 2)).toFixed(1)}`
  })
  return (
    <svg
      class="sparkline"
      width={sparkWidth}
      height={sparkHeight}
      viewBox={`0 0 ${sparkWidth} ${sparkHeight}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={strings.buckets.trend(formatSize(first.bytes), formatSize(last.bytes))}
    >
      <polyline points={points.join(' ')} />
    </svg>
  )
}

const periods = [30, 90, 365]

/** What the chart can show of a day. */
const figures = {
  bytes: { of: ({ bytes }: Usage) => bytes, format: formatSize },
  items: { of: ({ items }: Usage) => items, format: formatCount },
  downloaded: { of: (day: Usage) => day.downloaded_bytes, format: formatSize },
  requests: {
    of: ({ requests: { list, download, upload, other } }: Usage) => list + download + upload + other,
    format: formatCount,
  },
}
type Figure = keyof typeof figures

const dayText = (day: string): string =>
  new Date(`${day}T00:00:00Z`).toLocaleDateString(locale.current, { dateStyle: 'medium', timeZone: 'UTC' })

/** The usage of a bucket by day, as bars and as a table. */
export function UsageSection({ name }: { name: string }) {
  const { buckets, connectionTo } = useService()
  const connection = useMemo(() => connectionTo(name), [connectionTo, name])
  const [period, setPeriod] = useState(30)
  const [figure, setFigure] = useState<Figure>('bytes')
  const [days, setDays] = useState<readonly Usage[] | null>(null)
  const [error, setError] = useState<string | null>(null)
  const [attempt, setAttempt] = useState(0)
  const isLost = connection.lost.value
  useEffect(() => {
    if (isLost) return
    const closing = new AbortController()
    connection
      .watch(() => buckets.usage(name, { from: daysAgo(period - 1), signal: closing.signal }))
      .then(
        (loaded) => {
          if (closing.signal.aborted) return
          setDays(loaded)
          setError(null)
        },
        (reason: unknown) => closing.signal.aborted || setError(errorMessage(reason)),
      )
    return () => closing.abort()
  }, [buckets, connection, name, period, attempt, isLost])
  const texts = strings.buckets
  const periodTexts = Object.fromEntries(periods.map((count) => [`${count}`, texts.days(count)]))
  return (
    <section class="bucket-card bucket-usage" aria-labelledby="usage-title">
      <div class="bucket-card-head">
        <h2 id="usage-title">{texts.usage}</h2>
        <div class="bucket-choices">
          <Choice label={texts.figure} options={texts.figures} value={figure} onChoose={setFigure} quiet />
          <Choice
            label={texts.period}
            options={periodTexts}
            value={`${period}`}
            onChoose={(next) => setPeriod(Number(next))}
            quiet
          />
        </div>
      </div>
      {error !== null && (
        <LoadError
          title={texts.usageFailed}
          reason={error}
          onRetry={() => setAttempt((before) => before + 1)}
        />
      )}
      {error === null && days !== null && (
        <>
          <Bars days={days} figure={figure} period={texts.days(period)} />
          <Numbers days={days} />
        </>
      )}
    </section>
  )
}

const chartHeight = 140

function Bars({ days, figure, period }: { days: readonly Usage[]; figure: Figure; period: string }) {
  const { of, format } = figures[figure]
  const values = days.map(of)
  const highest = Math.max(0, ...values)
  const texts = strings.buckets
  const [first, last] = [days[0]?.day, days.at(-1)?.day]
  return (
    <figure class="bucket-chart">
      <figcaption class="muted" aria-hidden="true">
        {format(highest)}
      </figcaption>
      <svg
        width="100%"
        height={chartHeight}
        viewBox={`0 0 ${days.length} ${chartHeight}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={texts.chart(texts.figures[figure], period, format(highest))}
      >
        {days.map((day, index) => {
          const height = highest === 0 ? 0 : ((values[index] ?? 0) / highest) * (chartHeight - 1)
          return (
            <rect
              key={day.day}
              class={day.is_partial ? 'partial' : undefined}
              x={index + 0.1}
              y={chartHeight - 1 - height}
              width={0.8}
              height={height + 1}
            >
              <title>{`${dayText(day.day)}: ${format(values[index] ?? 0)}`}</title>
            </rect>
          )
        })}
      </svg>
      <div class="bucket-chart-days muted" aria-hidden="true">
        <span>{first !== undefined && dayText(first)}</span>
        <span>{last !== undefined && dayText(last)}</span>
      </div>
    </figure>
  )
}

/** The same numbers, latest first. */
function Numbers({ days }: { days: readonly Usage[] }) {
  const texts = strings.buckets
  return (
    <details class="form-more">
      <summary>{texts.numbers}</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <section class="deliveries" aria-label={texts.numbers} tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">{texts.day}</th>
              {Object.values(texts.figures).map((title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {days.toReversed().map((day) => (
              <tr key={day.day}>
                <th scope="row">{day.is_partial ? texts.today(dayText(day.day)) : dayText(day.day)}</th>
                {Object.entries(figures).map(([figure, { of, format }]) => (
                  <td key={figure}>{format(of(day))}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </details>
  )
}
