import { resolve } from 'node:path'
import { startSubject } from './subject.ts'

const bin = resolve(import.meta.dirname, '../packages/server/bin/mediabucket.js')

/** The service as its command starts it, with the settings it has by default but for these. */
export const startMediabucket = (
  data: string,
  settings: Readonly<Record<string, string>> = {},
  name = 'mediabucket',
) =>
  startSubject(
    name,
    ['node', bin, 'serve'],
    { MEDIABUCKET_DATA: data, MEDIABUCKET_PORT: '0', ...settings },
    (printed) => /ready at (\S+)/.exec(printed)?.[1] ?? null,
  )
