import type { CallOptions } from './client-options.ts'
import { sendJson } from './json.ts'
import type { SendSettings } from './send.ts'
import { arrayOf, type Check, count, flag, objectOf, parse, text } from './shape.ts'
import type { Endpoints } from './urls.ts'

/** Data of an app on an item: up to 16 keys of `a` to `z`, `0` to `9`, `_`, `.` and `-`, with texts of up to 200 characters. */
export type Labels = Readonly<Record<string, string>>

/** A value of a key, and how many items have it. */
export interface LabelValue {
  readonly value: string
  readonly items: number
}

/** A key of the labels of a bucket, with its most frequent values. */
export interface LabelKey {
  readonly key: string
  readonly values: readonly LabelValue[]
  /** Whether the key has further values. */
  readonly has_more: boolean
}

export interface LabelOptions extends CallOptions {
  /** Only labels with this key. */
  readonly key?: string | undefined
  /** Values of each key, from 1 to 500. Default: 20. */
  readonly limit?: number | undefined
}

const shape: Check<{ readonly data: readonly LabelKey[] }> = objectOf<{ readonly data: readonly LabelKey[] }>(
  {
    data: arrayOf(
      objectOf<LabelKey>({
        key: text,
        values: arrayOf(objectOf<LabelValue>({ value: text, items: count })),
        has_more: flag,
      }),
    ),
  },
)

/** Fetches the labels of the items of the bucket. */
export function fetchLabels(
  settings: SendSettings,
  endpoints: Endpoints,
  { key, limit, signal }: LabelOptions,
): Promise<readonly LabelKey[]> {
  const parameters = new URLSearchParams()
  if (key !== undefined) parameters.set('key', key)
  if (limit !== undefined) parameters.set('limit', `${limit}`)
  return sendJson(settings, {
    url: endpoints.labels(parameters),
    signal,
    what: 'a list of labels',
    read: (value) => parse('a list of labels', shape, value).data,
  })
}

/** The header with labels: JSON in ASCII. */
export const labelsHeader = (labels: Labels | undefined): Readonly<Record<string, string>> =>
  labels === undefined
    ? {}
    : {
        'mediabucket-labels': JSON.stringify(labels).replace(
          /[^ -~]/g,
          (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
        ),
      }
