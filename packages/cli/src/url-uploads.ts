import type { Labels } from '@mediabucket/client'
import { affectsAllFiles, type ClientContext } from './client-command.ts'
import { CommandError, UsageError } from './command.ts'
import { createProgressBars, formatCount, formatSize, type LineFormat, printItem } from './terminal.ts'

export const isSourceUrl = (path: string): boolean => /^https?:\/\//i.test(path)

function isPlainUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { username, password } = new URL(text)
  return username === '' && password === ''
}

/** Throws UsageError for a text that the client does not take for a URL, without showing it: it may have a password. */
export function requireSourceUrls(urls: readonly string[]): void {
  if (!urls.every(isPlainUrl))
    throw new UsageError('upload takes URLs with a host, and without user name and password')
}

interface UrlArguments {
  /** The URLs. */
  readonly paths: readonly string[]
  readonly filename: string | undefined
  readonly format: LineFormat
  readonly expiresAt: Date | undefined
  readonly labels: Labels | undefined
}

/** Has the service request files from other servers, one after the other. */
export async function uploadUrls(
  { paths, filename, format, expiresAt, labels }: UrlArguments,
  { client, output, report, interrupted, explain }: ClientContext,
): Promise<void> {
  const start = performance.now()
  const bars = createProgressBars(process.stderr)
  const failures: string[] = []
  let bytes = 0
  let stored = 0
  for (const url of paths) {
    const name = shownUrl(url)
    try {
      const item = await client.uploadFromUrl(url, {
        ...{ filename, expiresAt, labels, signal: interrupted },
        onProgress: ({ received, size }) => bars.show([{ name, done: received, total: size, skipped: 0 }]),
      })
      bars.clear()
      await printItem(output, format, item, name)
      bytes += item.size
      stored += 1
    } catch (error) {
      bars.clear()
      const explained = explain(error)
      if (paths.length === 1 || explained === null || affectsAllFiles(error, explained)) throw error
      failures.push(`  ${name}: ${explained.message}`)
    }
  }
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  report(`Uploaded ${stored} of ${formatCount(paths.length, 'file')}, ${formatSize(bytes)} in ${seconds} s.`)
  if (failures.length === 0) return
  report('Not uploaded:', ...failures)
  throw new CommandError(
    `${failures.length} of ${formatCount(paths.length, 'file')} ${failures.length === 1 ? 'was' : 'were'} not uploaded`,
  )
}

/** Without the query, which may have a secret. */
function shownUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  return url === null ? text : `${url.origin}${url.pathname}`
}
