import { resolve } from 'node:path'
import { type Measure, runPinned, type Subject } from './subject.ts'

/** The figures of one transfer of `size` bytes. `cpu` is in seconds. */
export const transferOf = (milliseconds: number, size: number, cpu: number): Measure => ({
  perSecond: 1_000 / milliseconds,
  bytesPerSecond: (1_000 / milliseconds) * size,
  cpuPerRequest: cpu,
  p50: milliseconds,
  p99: milliseconds,
})

/** Runs a program on both cores that prints its milliseconds, and what else it has found. */
export const runTransfer = async (
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly milliseconds: number; readonly location?: string | null }> =>
  JSON.parse(await runPinned('load', ['node', resolve(import.meta.dirname, file), ...args], env, '0,1'))

/** Sends a file in a form of loads/send-file.ts. */
export async function sendFile(
  subject: Subject,
  form: 'bare' | 'put',
  url: string,
  size: number,
): Promise<Measure> {
  const before = subject.cpu()
  const { milliseconds } = await runTransfer('loads/send-file.ts', [form, url, `${size}`])
  return transferOf(milliseconds, size, subject.cpu() - before)
}

/** Gets a file with curl, which takes little time itself. */
export async function getFile(subject: Subject, url: string, size: number): Promise<Measure> {
  const before = subject.cpu()
  const options = ['-s', '-f', '-o', '/dev/null', '-w', '%{time_total} %{size_download}']
  const printed = await runPinned('load', ['curl', ...options, url], {}, '0,1')
  const [seconds = Number.NaN, bytes] = printed.split(' ').map(Number)
  if (bytes !== size) throw new Error(`a download has ${bytes} bytes`)
  return transferOf(seconds * 1_000, size, subject.cpu() - before)
}
